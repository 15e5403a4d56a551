/**
 * Proves that a sandbox holds before it is trusted: the same program that will run the ops must read a file of a session and write one there, and must fail to
 * read a canary beside the session and to write there. A control without any sandbox shows that the canary is readable at all.
 */
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TailBuffer } from '../core/output-tail.js';
import { runChild } from '../process/child.js';
import { noSandbox, type Sandbox } from './sandbox.js';

const TIMEOUT_MS = 10_000;

/** What the test works with. `scratch` is a private folder of this process. */
export interface SelfTestParts {
  ffmpeg: string;
  environment: Readonly<Record<string, string>>;
  scratch: string;
  nextMarker(): string;
}

/** @returns undefined when the sandbox holds, else why not. Never rejects. */
export async function selfTest(sandbox: Sandbox, parts: SelfTestParts): Promise<string | undefined> {
  const folder = join(parts.scratch, `self-test-${sandbox.name}`);
  const sessionDir = join(folder, 'session');
  const outside = join(folder, 'outside');
  try {
    await mkdir(sessionDir, { recursive: true, mode: 0o700 });
    await mkdir(outside, { recursive: true, mode: 0o700 });
    const canary = join(outside, 'canary.wav');
    await writeFile(canary, silentWav());
    await copyFile(canary, join(sessionDir, 'in.wav'));
    const encode = (from: string, to: string): string[] => [
      '-nostdin',
      '-v',
      'error',
      '-y',
      '-i',
      from,
      '-c',
      'copy',
      to,
    ];

    const [control, inside, stolen] = await Promise.all([
      attempt(noSandbox, encode(canary, 'control.wav')),
      attempt(sandbox, encode('in.wav', 'out.wav')),
      attempt(sandbox, encode(canary, 'stolen.wav')),
      attempt(sandbox, encode('in.wav', join(outside, 'escaped.wav'))),
    ]);
    if (control !== undefined) return `the control without a sandbox failed: ${control}`;
    if (inside !== undefined) return `work inside a session failed: ${inside}`;
    if (!(await exists(join(sessionDir, 'out.wav')))) return 'what was written inside a session did not arrive';
    if (stolen === undefined || (await exists(join(sessionDir, 'stolen.wav'))))
      return 'a file outside the session could be read';
    if (await exists(join(outside, 'escaped.wav'))) return 'a file outside the session could be written';
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }

  /** Undefined when the program ended with 0, else what it said. */
  async function attempt(by: Sandbox, argv: string[]): Promise<string | undefined> {
    const command = by.wrap({ program: parts.ffmpeg, argv, sessionDir, environment: parts.environment });
    const tail = new TailBuffer(512);
    const outcome = await runChild({
      program: command.program,
      argv: command.argv,
      env: command.environment,
      cwd: sessionDir,
      marker: parts.nextMarker(),
      timeoutMs: TIMEOUT_MS,
      killAfterMs: 500,
      onStderr: (chunk) => tail.feed(chunk),
    });
    if (outcome.kind === 'not_started') return `${command.program} cannot be started (${outcome.code})`;
    if (outcome.exitCode === 0 && outcome.stopped === null) return undefined;
    const said = Buffer.from(tail.bytes()).toString('utf8').trim().split('\n').pop() ?? '';
    return outcome.stopped === null ? `exit code ${outcome.exitCode}: ${said}` : `${outcome.stopped}: ${said}`;
  }
}

async function exists(path: string): Promise<boolean> {
  return readFile(path).then(
    () => true,
    () => false,
  );
}

/** A tenth of a second of silence: 8 kHz, mono, 16 bit. */
function silentWav(): Buffer {
  const samples = 800;
  const bytes = Buffer.alloc(44 + samples * 2);
  bytes.write('RIFF', 0, 'latin1');
  bytes.writeUInt32LE(36 + samples * 2, 4);
  bytes.write('WAVEfmt ', 8, 'latin1');
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(8000, 24);
  bytes.writeUInt32LE(16000, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write('data', 36, 'latin1');
  bytes.writeUInt32LE(samples * 2, 40);
  return bytes;
}
