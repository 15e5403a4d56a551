/**
 * Chooses the sandbox at start: the first mechanism of the platform that is there and passes the self-test. What was tried and why it was not taken is logged,
 * so that an operator can mend it.
 */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { probeOutput } from '../probe/programs.js';
import { bubblewrap } from './bubblewrap.js';
import { landlock } from './landlock.js';
import { noSandbox, type ReadableParts, type Sandbox } from './sandbox.js';
import { SANDBOX_EXEC, sandboxExec } from './sandbox-exec.js';
import { type SelfTestParts, selfTest } from './self-test.js';

/** A sandbox was required and none passed its self-test; the message says what was tried and why it failed. */
export class SandboxMissing extends Error {
  override readonly name = 'SandboxMissing';
}

/** What the choice needs; `note` gets a line per mechanism that was not taken. */
export interface SelectionParts extends SelfTestParts {
  readable: ReadableParts;
  note(mechanism: string, reason: string): void;
}

/** @throws SandboxMissing when `required` cannot be met. */
export async function selectSandbox(mode: 'auto' | 'required' | 'off', parts: SelectionParts): Promise<Sandbox> {
  if (mode === 'off') return noSandbox;
  const reasons: string[] = [];
  for (const { name, make } of candidates(parts)) {
    const made = await make();
    const reason = typeof made === 'string' ? made : await selfTest(made, parts);
    if (reason === undefined) return made as Sandbox;
    reasons.push(`${name}: ${reason}`);
    parts.note(name, reason);
  }
  if (mode === 'required') {
    throw new SandboxMissing(
      `a sandbox is required and none is usable (${reasons.join('; ') || 'none known for this system'}): ${hint()}`,
    );
  }
  return noSandbox;
}

interface Candidate {
  name: string;
  /** The mechanism, or why it is not there. */
  make(): Promise<Sandbox | string>;
}

function candidates(parts: SelectionParts): Candidate[] {
  if (process.platform === 'darwin') {
    return [
      {
        name: 'sandbox-exec',
        make: async () => ((await runnable(SANDBOX_EXEC)) ? sandboxExec(parts.readable) : `no ${SANDBOX_EXEC}`),
      },
    ];
  }
  if (process.platform !== 'linux') return [];
  return [
    { name: 'bubblewrap', make: () => makeBubblewrap(parts) },
    { name: 'landlock', make: () => makeLandlock(parts) },
  ];
}

async function makeBubblewrap(parts: SelectionParts): Promise<Sandbox | string> {
  const program = await find('bwrap');
  if (program === undefined) return 'bwrap is not installed';
  const help = await helpOf(program, parts);
  return bubblewrap(program, parts.readable, { disableUserns: help.includes('--disable-userns') });
}

async function makeLandlock(parts: SelectionParts): Promise<Sandbox | string> {
  const program = await find('setpriv');
  if (program === undefined) return 'setpriv is not installed';
  if (!(await helpOf(program, parts)).includes('--landlock-access')) return 'setpriv is older than util-linux 2.41';
  return landlock(program, parts.readable);
}

async function helpOf(program: string, parts: SelfTestParts): Promise<string> {
  return (await probeOutput(program, ['--help'], { marker: parts.nextMarker() }).catch(() => undefined)) ?? '';
}

/** System folders only: a sandbox found on an odd PATH is no sandbox. REELHOST_SANDBOX_PATH adds a folder, for tests and odd systems. */
async function find(name: string): Promise<string | undefined> {
  const extra = process.env['REELHOST_SANDBOX_PATH'];
  for (const folder of [
    ...(extra ? [extra] : []),
    '/usr/bin',
    '/bin',
    '/usr/local/bin',
    '/run/current-system/sw/bin',
  ]) {
    if (await runnable(`${folder}/${name}`)) return `${folder}/${name}`;
  }
  return undefined;
}

async function runnable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

function hint(): string {
  return process.platform === 'linux'
    ? 'install bubblewrap ("sudo apt install bubblewrap"), or start with --sandbox auto'
    : 'start with --sandbox auto';
}
