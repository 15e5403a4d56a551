/**
 * Chooses the sandbox at start: the first mechanism of the platform that is there and passes the self-test. What was tried and why it was not taken is logged,
 * so that an operator can mend it. Mechanisms stand in the order of what they close; those that close the network come before those that do not.
 */
import { constants } from 'node:fs';
import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { probeOutput } from '../probe/programs.js';
import { bubblewrap } from './bubblewrap.js';
import { landlock, type NetworkGuard } from './landlock.js';
import { noSandbox, type ReadableParts, type Sandbox } from './sandbox.js';
import { SANDBOX_EXEC, sandboxExec } from './sandbox-exec.js';
import { socketFilter } from './seccomp.js';
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
  for await (const { name, tried } of trials(parts)) {
    if (typeof tried !== 'string') return tried;
    reasons.push(`${name}: ${tried}`);
    parts.note(name, tried);
  }
  if (mode === 'required') {
    throw new SandboxMissing(
      `a sandbox is required and none is usable (${reasons.join('; ') || 'none known for this system'}): ${hint()}`,
    );
  }
  return noSandbox;
}

/** Every mechanism that passes its self-test here, under the name of its kind, in the order of choice: for tests that try them all. */
export async function usableSandboxes(parts: SelectionParts): Promise<ReadonlyMap<string, Sandbox>> {
  const usable = new Map<string, Sandbox>();
  for await (const { name, tried } of trials(parts)) {
    if (typeof tried === 'string') parts.note(name, tried);
    else usable.set(name, tried);
  }
  return usable;
}

/** One mechanism after the other: the sandbox as it was proven, or why it is none. Nothing is tried before it is asked for. */
async function* trials(parts: SelectionParts): AsyncGenerator<{ name: string; tried: Sandbox | string }> {
  let said = '';
  for (const { name, make } of candidates(parts)) {
    const made = await make();
    if (typeof made === 'string') {
      // What a group of mechanisms lacks together is said once.
      if (made !== said) yield { name, tried: made };
      said = made;
      continue;
    }
    const result = await selfTest(made, parts);
    yield { name, tried: result.holds ? { ...made, network: result.network } : result.reason };
  }
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
    { name: 'landlock with a call filter', make: () => makeLandlock(parts, 'filter') },
    { name: 'landlock in a network namespace', make: () => makeLandlock(parts, 'namespace') },
    { name: 'landlock', make: () => makeLandlock(parts, 'nothing') },
  ];
}

async function makeBubblewrap(parts: SelectionParts): Promise<Sandbox | string> {
  const program = await find('bwrap');
  if (program === undefined) return 'bwrap is not installed';
  const help = await helpOf(program, parts);
  return bubblewrap(program, parts.readable, { disableUserns: help.includes('--disable-userns') });
}

async function makeLandlock(parts: SelectionParts, kind: NetworkGuard['kind']): Promise<Sandbox | string> {
  const setpriv = await find('setpriv');
  if (setpriv === undefined) return 'setpriv is not installed';
  const help = await helpOf(setpriv, parts);
  if (!help.includes('--landlock-access')) return 'setpriv is older than util-linux 2.41';
  const guard = await networkGuard(kind, help, parts);
  return typeof guard === 'string' ? guard : landlock(setpriv, parts.readable, guard);
}

async function networkGuard(
  kind: NetworkGuard['kind'],
  help: string,
  parts: SelectionParts,
): Promise<NetworkGuard | string> {
  switch (kind) {
    case 'filter': {
      if (!help.includes('--seccomp-filter')) return 'setpriv was built without --seccomp-filter';
      const bytes = socketFilter(process.arch);
      if (bytes === undefined) return `the system calls of ${process.arch} are not known here`;
      const file = join(parts.scratch, 'sockets.bpf');
      await writeFile(file, bytes, { mode: 0o600 });
      return { kind, file };
    }
    case 'namespace': {
      const unshare = await find('unshare');
      return unshare === undefined ? 'unshare is not installed' : { kind, unshare };
    }
    case 'nothing':
      return { kind };
  }
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
