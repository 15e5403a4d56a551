/**
 * The broker's process: arguments, locks, exit codes. Runs until SIGTERM or SIGINT.
 *
 * Exit codes: 0 stopped, 1 unexpected, 2 usage, 5 already running, 75 try again (no space, no permission), 78 bad configuration.
 */
import { chmodSync, mkdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { exitOnCrash } from '@reelhost/log';
import { LinkedJournalError } from './journal/opening.js';
import { NewerJournalError } from './journal/schema.js';
import { createLog, type Logger } from './log.js';
import { type BrokerOptions, parseOptions } from './options.js';
import { serveLocked } from './service.js';
import { prepareSocketDirectory, resolveSocket, SocketPathError, type SocketPlace } from './socket/discovery.js';
import { LifeLock, LockedError } from './state/life-lock.js';

/** The state directory would be one that others use. */
class SharedFolderError extends Error {}

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
  const [code, exit] =
    error instanceof LockedError
      ? ['already_running', 5]
      : error instanceof SocketPathError
        ? [error.code, error.code === 'socket_path_in_use' ? 5 : 78]
        : error instanceof NewerJournalError
          ? ['newer_journal', 78]
          : error instanceof SharedFolderError
            ? ['shared_state_dir', 78]
            : error instanceof LinkedJournalError
              ? ['linked_journal', 78]
              : errorCode(error);
  log.fatal({ event: 'broker.refused', code, reason: (error as Error).message });
  return exit as number;
}

function errorCode(error: unknown): [string, number] {
  const code = (error as NodeJS.ErrnoException).code ?? 'unexpected';
  // A file stands where a folder was named.
  if (code === 'ENOTDIR' || code === 'EEXIST') return [code, 78];
  return [
    code,
    ['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'SQLITE_FULL', 'SQLITE_CANTOPEN', 'SQLITE_READONLY'].includes(code) ? 75 : 1,
  ];
}

async function serve(options: BrokerOptions, log: Logger): Promise<number> {
  const place = resolveSocket(options.socket, process.env);
  const stateDirectory = privateStateDirectory(options.stateDir);
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

/** Makes it when it is missing, closes it to others. A folder that everybody may write to (/tmp) is somebody else's: never close that. */
function privateStateDirectory(path: string): string {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const directory = realpathSync(path);
  if ((statSync(directory).mode & 0o1002) !== 0) {
    throw new SharedFolderError(
      `${directory} is shared with others; name a folder of its own, for instance ${join(directory, 'reelhost')}`,
    );
  }
  chmodSync(directory, 0o700);
  return directory;
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
