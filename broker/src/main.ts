/**
 * Composes the broker and runs it until SIGTERM or SIGINT. Order of a start: arguments, state directory, locks, journal, sweep of orphaned session
 * directories, restored state, socket last: who can connect finds everything in place.
 *
 * Exit codes: 0 stopped, 1 unexpected, 2 usage, 5 already running, 75 try again (no space, no permission), 78 bad configuration.
 */
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { Broker } from './broker.js';
import { SYSTEM_CLOCK } from './clock.js';
import { DEFAULT_SETTINGS, newCore, restore } from './core/index.js';
import { SystemEntropy } from './entropy.js';
import { JournalArchive } from './journal/archive.js';
import { openJournal } from './journal/opening.js';
import { NewerJournalError } from './journal/schema.js';
import { createLog, type Logger } from './log.js';
import { type BrokerOptions, parseOptions } from './options.js';
import { prepareSocketDirectory, resolveSocket, SocketPathError, type SocketPlace } from './socket/discovery.js';
import { SocketServer } from './socket/server.js';
import { connectionLimit } from './state/descriptor-limit.js';
import { LifeLock, LockedError } from './state/life-lock.js';
import { SessionDirectories } from './state/session-directories.js';

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
          : errorCode(error);
  log.fatal({ event: 'broker.refused', code, reason: (error as Error).message });
  return exit as number;
}

function errorCode(error: unknown): [string, number] {
  const code = (error as NodeJS.ErrnoException).code ?? 'unexpected';
  return [code, ['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'SQLITE_FULL', 'SQLITE_CANTOPEN'].includes(code) ? 75 : 1];
}

async function serve(options: BrokerOptions, log: Logger): Promise<number> {
  const place = resolveSocket(options.socket, process.env);
  mkdirSync(options.stateDir, { recursive: true, mode: 0o700 });
  const stateDirectory = realpathSync(options.stateDir);
  chmodSync(stateDirectory, 0o700);
  prepareSocketDirectory(place);
  refuseSocketInState(place, stateDirectory);
  const stopRequested = stopSignal();
  const locks = takeLocks(stateDirectory, place.path);
  try {
    return await serveLocked(options, log, place, stateDirectory, stopRequested);
  } finally {
    for (const lock of locks) lock.release();
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

async function serveLocked(
  options: BrokerOptions,
  log: Logger,
  place: SocketPlace,
  stateDirectory: string,
  stopRequested: Promise<string>,
): Promise<number> {
  const opened = openJournal(stateDirectory, options.durability, new Date().toISOString().replace(/[-:]|\.\d+/g, ''));
  const { journal } = opened;
  if (opened.setAside !== null) log.error({ event: 'journal.set_aside', path: opened.setAside });
  const directories = new SessionDirectories(stateDirectory);
  const archive = new JournalArchive(journal, directories, opened.path, opened.setAside);
  const settings = { ...DEFAULT_SETTINGS, queueConcurrency: options.queueConcurrency, queues: options.queue };
  const generation = Number(journal.meta('generation', () => '0')) + 1;
  const instance = journal.meta('instance', () => randomBytes(6).toString('hex'));
  const identity = { version: ownVersion(), instance, generation };
  const core = newCore(settings, identity, archive, new SystemEntropy(), SYSTEM_CLOCK.now(), opened.nextSeq);
  journal.setMeta('generation', String(generation));
  const broker = new Broker({ core, journal, directories, clock: SYSTEM_CLOCK, log, onCommitFailed: () => false });
  restore(core, opened.state);
  broker.planTurn();
  const swept = directories.sweep((id) => core.sessions.has(id), `${generation}`);
  if (swept.directories > 0) log.info({ event: 'sessions.swept', directories: swept.directories });
  const server = new SocketServer({
    path: place.path,
    mode: options.socketMode,
    maxConnections: connectionLimit(options.maxConnections),
    onConnection: (socket) => broker.accept(socket),
    onRefused: () => log.warn({ event: 'peer.refused', reason: 'too_many_connections' }),
  });
  await server.listen();
  log.info({
    event: 'broker.ready',
    socket: place.path,
    stateDir: stateDirectory,
    durability: options.durability,
    instance,
    generation,
    unfinishedJobs: opened.state.jobs.length,
    sessions: opened.state.sessions.length,
  });
  const signal = await stopRequested;
  log.info({ event: 'broker.stopping', signal });
  server.close();
  await broker.stop();
  journal.close();
  log.info({ event: 'broker.stopped' });
  return 0;
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

function ownVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
