/**
 * The executor's side of the guardian process (see guardian-main.ts): started before the first child, told of every child, restarted when it dies.
 * It never blocks a run: when it cannot be started, children are still ended by every orderly path, and `alive` says so.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { builtFile } from '../built-file.js';

/** Told of each child's beginning and end. */
export interface Guardian {
  /** Starts it if it does not run; resolves when it runs or has failed to start. */
  start(): Promise<void>;
  watch(leader: number, marker: string): void;
  release(leader: number): void;
  /** Lets it end by itself: it kills whatever is still listed. Resolves when it is gone. */
  stop(): Promise<void>;
  readonly alive: boolean;
}

/** `owner` is the marker prefix of this executor. */
export function createGuardian(owner: string): Guardian {
  const watched = new Map<number, string>();
  let child: ChildProcess | undefined;
  let stopping = false;

  function launch(): Promise<void> {
    const started = spawn(
      process.execPath,
      ['--max-old-space-size=16', fileURLToPath(builtFile('./guardian-main.js', import.meta.url)), owner],
      {
        detached: true,
        stdio: ['pipe', 'ignore', 'ignore'],
        env: { PATH: process.env['PATH'] ?? '' },
      },
    );
    child = started;
    started.stdin.on('error', () => undefined);
    const settled = new Promise<void>((resolve) => {
      started.once('spawn', resolve);
      started.once('error', () => resolve());
    });
    started.once('exit', () => {
      if (child !== started) return;
      child = undefined;
      if (!stopping && watched.size > 0) void launch();
    });
    for (const [leader, marker] of watched) send(`+${leader} ${marker}`);
    started.unref();
    // A pipe to a child is a socket underneath; it must not keep the executor alive by itself.
    (started.stdin as unknown as { unref?: () => void }).unref?.();
    return settled;
  }

  function send(line: string): void {
    if (child?.stdin?.writable) child.stdin.write(`${line}\n`);
  }

  return {
    async start() {
      if (child === undefined && !stopping) await launch();
    },
    watch(leader, marker) {
      watched.set(leader, marker);
      send(`+${leader} ${marker}`);
    },
    release(leader) {
      if (watched.delete(leader)) send(`-${leader}`);
    },
    async stop() {
      stopping = true;
      const last = child;
      if (last === undefined || last.exitCode !== null || last.signalCode !== null || last.pid === undefined) return;
      last.ref();
      await new Promise<void>((resolve) => {
        last.once('exit', () => resolve());
        last.stdin?.end();
      });
    },
    get alive() {
      return child !== undefined && child.pid !== undefined && child.exitCode === null;
    },
  };
}
