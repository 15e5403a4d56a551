/**
 * The broker's process: arguments, locks, exit codes. Runs until SIGTERM or SIGINT.
 *
 * Exit codes: 0 stopped, 1 unexpected, 2 usage, 5 already running, 75 try again (no space, no permission), 78 bad configuration.
 */
import { realpathSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { exitOnCrash } from '@reelhost/log';
import { StateFolderError, takeStateFolder } from '@reelhost/log/private-folder';
import { LinkedJournalError } from './journal/opening.js';
import { NewerJournalError } from './journal/schema.js';
import { createLog, type Logger } from './log.js';
import { type BrokerOptions, parseOptions } from './options.js';
import { serveLocked } from './service.js';
import { prepareSocketDirectory, resolveSocket, SocketPathError, type SocketPlace } from './socket/discovery.js';
import { LifeLock, LockedError } from './state/life-lock.js';

/** Runs the broker; resolves with the exit code when it has stopped. */
export async function run(argv: string[]): Promise<number> {
  const options = parseOptions(argv);
  if (typeof options === 'number') return options;
  const log = createLog(options.logLevel);
  if (process.platform === 'win32') {
    log.fatal({ event: 'broker.refused', code: 'unsupported_platform', reason: 'Windows is not supported; use WSL 2' });
    return 78;
  }
  try {
    return await serve(options, log);
  } catch (error) {
    return refusal(error, log);
  }
}

function refusal(error: unknown, log: Logger): number {
  const { code, exit, advice } = troubleOf(error);
  log.fatal({ event: 'broker.refused', code, reason: (error as Error).message + advice });
  return exit;
}

/** What the system says about files, whether trying again may help, and what to do. */
const FILE_TROUBLES: readonly (readonly [codes: readonly string[], exit: 75 | 78, advice: string])[] = [
  [['ENOTDIR', 'EEXIST'], 78, 'a file stands where a folder was named; name another one'],
  [['ENOENT'], 78, 'name another place (--state-dir, --socket)'],
  [['EACCES', 'EPERM'], 75, 'give this user the right to write there, or name other places (--state-dir, --socket)'],
  [['EROFS'], 75, 'nothing can be written there; name other places (--state-dir, --socket)'],
  [['ENOSPC', 'SQLITE_FULL'], 75, 'free some space'],
  [['SQLITE_CANTOPEN', 'SQLITE_READONLY'], 75, 'this user must be able to write all files in the state directory'],
];

function troubleOf(error: unknown): { readonly code: string; readonly exit: number; readonly advice: string } {
  const told = (code: string, exit: 5 | 78) => ({ code, exit, advice: '' });
  if (error instanceof LockedError) return told('already_running', 5);
  if (error instanceof SocketPathError) return told(error.code, error.code === 'socket_path_in_use' ? 5 : 78);
  if (error instanceof NewerJournalError) return told('newer_journal', 78);
  if (error instanceof LinkedJournalError) return told('linked_journal', 78);
  if (error instanceof StateFolderError) return told(error.code, 78);
  const code = (error as NodeJS.ErrnoException).code ?? 'unexpected';
  const [, exit, advice] = FILE_TROUBLES.find(([codes]) => codes.includes(code)) ?? [[], 1, ''];
  return { code, exit, advice: advice === '' ? '' : `: ${advice}` };
}

async function serve(options: BrokerOptions, log: Logger): Promise<number> {
  const place = resolveSocket(options.socket, process.env);
  const stateDirectory = takeStateFolder(options.stateDir);
  prepareSocketDirectory(place);
  refuseSocketInState(place, stateDirectory);
  const stopRequested = stopSignal();
  const endCrashWatch = exitOnCrash('broker');
  const locks = takeLocks(stateDirectory, place.path);
  try {
    return await serveLocked(options, log, place, stateDirectory, locks, stopRequested);
  } finally {
    for (const lock of locks) lock.release();
    endCrashWatch();
  }
}

/** The socket must lie outside the durable directory: whoever removes one must not remove the other. */
function refuseSocketInState(place: SocketPlace, stateDirectory: string): void {
  const directory = realpathSync(dirname(place.path));
  if (directory === stateDirectory || directory.startsWith(stateDirectory + sep)) {
    throw new SocketPathError(
      'invalid_socket_path',
      `the socket ${place.path} must lie outside the state directory ${stateDirectory}`,
    );
  }
}

function takeLocks(stateDirectory: string, socketPath: string): LifeLock[] {
  const socketLock = LifeLock.take(`${socketPath}.lock`);
  try {
    return [socketLock, LifeLock.take(join(stateDirectory, 'broker.lock'))];
  } catch (error) {
    socketLock.release();
    throw error;
  }
}

/** Resolves with the first signal; a second one ends the process at once. */
function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.once(signal, () => {
        process.once(signal, () => process.exit(1));
        resolve(signal);
      });
    }
  });
}
