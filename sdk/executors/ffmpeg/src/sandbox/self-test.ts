/**
 * Proves that a sandbox holds before it is trusted: the same program that will run the ops must read a file of a session and write one there, and must fail to
 * read a canary beside the session, to write there, and, where the mechanism says that it closes the network, to reach a listener of this computer by TCP and
 * by UDP. Controls without any sandbox show that the canary is readable and the listener reachable at all.
 */
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TailBuffer } from '../core/output-tail.js';
import { runChild } from '../process/child.js';
import { type LoopbackTrap, openLoopbackTrap } from './loopback-trap.js';
import { noSandbox, type Sandbox } from './sandbox.js';

const TIMEOUT_MS = 10_000;
const QUIETLY = ['-nostdin', '-v', 'error', '-y'];

/** What the test works with. `scratch` is a private folder of this process. */
export interface SelfTestParts {
  ffmpeg: string;
  environment: Readonly<Record<string, string>>;
  scratch: string;
  nextMarker(): string;
}

/** `holds: false` is no sandbox at all. `network` is what was shown, never more than the mechanism itself says: a network not proven closed counts as open. */
export type SelfTestResult = { holds: true; network: Sandbox['network'] } | { holds: false; reason: string };

/** Tries the sandbox. Never rejects. */
export async function selfTest(sandbox: Sandbox, parts: SelfTestParts): Promise<SelfTestResult> {
  const fails = (reason: string): SelfTestResult => ({ holds: false, reason });
  const folder = join(parts.scratch, `self-test-${sandbox.name}`);
  const sessionDir = join(folder, 'session');
  const outside = join(folder, 'outside');
  let trap: LoopbackTrap | undefined;
  try {
    await mkdir(sessionDir, { recursive: true, mode: 0o700 });
    await mkdir(outside, { recursive: true, mode: 0o700 });
    const canary = join(outside, 'canary.wav');
    await writeFile(canary, silentWav());
    await copyFile(canary, join(sessionDir, 'in.wav'));
    const encode = (from: string, ...to: string[]): string[] => [...QUIETLY, '-i', from, '-c', 'copy', ...to];

    const [control, inside, stolen] = await Promise.all([
      attempt(noSandbox, encode(canary, 'control.wav')),
      attempt(sandbox, encode('in.wav', 'out.wav')),
      attempt(sandbox, encode(canary, 'stolen.wav')),
      attempt(sandbox, encode('in.wav', join(outside, 'escaped.wav'))),
    ]);
    if (control !== undefined) return fails(`the control without a sandbox failed: ${control}`);
    if (inside !== undefined) return fails(`work inside a session failed: ${inside}`);
    if (!(await exists(join(sessionDir, 'out.wav')))) return fails('what was written inside a session did not arrive');
    if (stolen === undefined || (await exists(join(sessionDir, 'stolen.wav'))))
      return fails('a file outside the session could be read');
    if (await exists(join(outside, 'escaped.wav'))) return fails('a file outside the session could be written');
    if (sandbox.network === 'open') return { holds: true, network: 'open' };

    trap = await openLoopbackTrap();
    const send = (by: Sandbox, { tcp, udp }: LoopbackTrap): Promise<unknown> =>
      Promise.all([
        attempt(by, encode('in.wav', '-f', 'wav', `tcp://127.0.0.1:${tcp}?timeout=2000000`)),
        attempt(by, encode('in.wav', '-f', 'wav', `udp://127.0.0.1:${udp}`)),
      ]);
    await send(sandbox, trap);
    const reached = await trap.reached();
    if (reached.length > 0) return fails(`the network could be reached by ${reached.join(' and ')}`);
    await send(noSandbox, trap);
    // An ffmpeg built without network protocols reaches nothing in the control either, and so shows nothing.
    return { holds: true, network: (await trap.reached()).length > 0 ? 'closed' : 'open' };
  } catch (error) {
    return fails((error as Error).message);
  } finally {
    await trap?.close();
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
