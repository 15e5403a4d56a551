/**
 * Turns this process into a daemon (docs/adr/0005): imports the daemon's module and awaits it. Nothing is parsed here; the daemon knows its
 * own flags and prints its own help. Modules are imported on use, so that no other command pays for them.
 */
import { CommandError, ExitCode } from './exit-codes.js';
import { watchParentPipe } from './parent-pipe.js';

/** Every daemon's module: runs until it is told to stop, and answers the exit code. */
interface DaemonModule {
  run(argv: string[]): Promise<number>;
}

/** First-party executors by the name one types. */
const EXECUTORS: Readonly<Record<string, () => Promise<unknown>>> = {
  ffmpeg: () => import('@reelhost/executor-ffmpeg/main'),
};

/** Names that `reelhost executor NAME` knows. */
export const EXECUTOR_NAMES: readonly string[] = Object.keys(EXECUTORS);

/** Becomes the broker. */
export async function runBroker(argv: string[]): Promise<number> {
  return become('broker', () => import('@reelhost/broker/main'), await withStateDir(argv));
}

/** Becomes the bridge. */
export async function runBridge(argv: string[]): Promise<number> {
  return become('bridge', () => import('@reelhost/bridge/main'), await withStateDir(argv));
}

/** Becomes the executor of that name. @throws CommandError usage: there is none of that name */
export function runExecutor(name: string, argv: string[]): Promise<number> {
  const load = Object.hasOwn(EXECUTORS, name) ? EXECUTORS[name] : undefined;
  if (load === undefined) {
    throw new CommandError(
      ExitCode.usage,
      `there is no executor "${name}"; known: ${EXECUTOR_NAMES.join(', ')}. An executor of your own needs no command: start it, and it connects to the broker's socket`,
    );
  }
  return become(`executor ${name}`, load, argv);
}

/** The daemons want to be told where their state lies; when nobody says so, it is where every other command looks for it. */
async function withStateDir(argv: string[]): Promise<string[]> {
  if (argv.some((word) => word === '--state-dir' || word.startsWith('--state-dir='))) return argv;
  const { defaultStateDir } = await import('./paths.js');
  return ['--state-dir', defaultStateDir(), ...argv];
}

async function become(what: string, load: () => Promise<unknown>, argv: string[]): Promise<number> {
  if (process.platform === 'win32') {
    throw new CommandError(
      ExitCode.badConfig,
      `reelhost ${what} does not run on Windows yet; use Linux or macOS (WSL works)`,
    );
  }
  process.title = `reelhost ${what}`;
  watchParentPipe();
  const daemon = (await load()) as Partial<DaemonModule>;
  if (typeof daemon.run !== 'function') throw new Error(`the module of reelhost ${what} exports no run()`);
  const code = await daemon.run(argv);
  // A daemon that is done is done: whatever a library left open must not keep the process.
  return process.exit(code);
}

/** Hands `reelhost argv check` to the validator of the ffmpeg executor. */
export async function runArgvCheck(argv: string[]): Promise<number> {
  const { runArgvCheck: check } = await import('@reelhost/executor-ffmpeg/argv-check');
  return check(argv);
}
