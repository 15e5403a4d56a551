/**
 * Composes the broker out of its parts and serves. Order of a start: journal, restored state, sweep of orphaned session directories, socket last:
 * who can connect finds everything in place. Order of an end: no more connections, last turn, journal.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Broker } from './broker.js';
import { SYSTEM_CLOCK } from './clock.js';
import { type Core, newCore, restore, type Settings } from './core/index.js';
import { SystemEntropy } from './entropy.js';
import { Housekeeping } from './housekeeping.js';
import { JournalArchive } from './journal/archive.js';
import { closeJournal } from './journal/closing.js';
import { Maintenance, type Retention } from './journal/maintenance.js';
import { isDamage, markDamaged, type OpenedJournal, openJournal } from './journal/opening.js';
import type { Logger } from './log.js';
import type { BrokerOptions } from './options.js';
import type { SocketPlace } from './socket/discovery.js';
import { refuseConnection, SocketServer } from './socket/server.js';
import { connectionLimit } from './state/descriptor-limit.js';
import type { LifeLock } from './state/life-lock.js';
import { SessionDirectories } from './state/session-directories.js';
import { SpaceReserve } from './state/space-reserve.js';

/** What must be free beside the reserve before new work is taken again. */
const RESERVE_MARGIN_BYTES = 1_048_576;
const SPACE_RETRY_MS = 3000;
/** Connections beyond the limit that are refused with a message. */
const TOLD_CONNECTIONS = 8;

/** Serves until it is told to stop or cannot go on; answers the exit code. The locks are held by the caller. */
export async function serveLocked(
  options: BrokerOptions,
  log: Logger,
  place: SocketPlace,
  stateDirectory: string,
  locks: LifeLock[],
  stopRequested: Promise<string>,
): Promise<number> {
  const reserve = new SpaceReserve(
    join(stateDirectory, 'space-reserve'),
    options.settings.spaceReserveBytes,
    RESERVE_MARGIN_BYTES,
  );
  const opened = await openWithSpace(stateDirectory, options, reserve, log, stopRequested);
  if (opened === null) return 0;
  const { journal } = opened;
  if (opened.setAside !== null) log.error({ event: 'journal.set_aside', path: opened.setAside });
  if (opened.lost !== null) log.error({ event: 'journal.lost', path: opened.path, ...opened.lost });
  const directories = new SessionDirectories(stateDirectory);
  const core = createCore(options, opened, directories);
  let broken: (code: number) => void = () => undefined;
  const brokenDown = new Promise<number>((resolve) => {
    broken = resolve;
  });
  const onBroken = (error: unknown): void => {
    if (isDamage(error)) markDamaged(opened.path);
    log.fatal({ event: 'broker.broken', damaged: isDamage(error), reason: (error as Error).stack ?? String(error) });
    broken(isDamage(error) ? 75 : 1);
  };
  const broker = new Broker({
    core,
    journal,
    directories,
    clock: SYSTEM_CLOCK,
    log,
    onCommitFailed: (error) => {
      if (!isDiskTrouble(error)) throw error;
      const { code, message } = error as NodeJS.ErrnoException;
      const released = reserve.release();
      if (code === 'SQLITE_FULL') housekeeping.degradeForSpace();
      else housekeeping.degrade('journal_error', message);
      return released;
    },
    onBroken,
  });
  const maxConnections = connectionLimit(options.settings.maxConnections);
  const onRefused = sparingly(log, { event: 'peer.refused', reason: 'too_many_connections' });
  const server = new SocketServer({
    path: place.path,
    mode: options.socketMode,
    // A few more than are served: they are told why. Beyond that the system closes them without a word.
    maxConnections: maxConnections + TOLD_CONNECTIONS,
    onConnection: (socket) => {
      if (broker.connections < maxConnections) return broker.accept(socket);
      onRefused();
      refuseConnection(socket, maxConnections);
    },
    onRefused,
  });
  const housekeeping = new Housekeeping({
    core,
    maintenance: new Maintenance(journal.database, retentionOf(options.settings), journal.census),
    reserve,
    server,
    locks,
    journalPath: opened.path,
    walPath: `${opened.path}-wal`,
    noteUse: () => opened.mark.note(opened.instance, opened.generation),
    onBroken,
    onMoved: () => {
      log.fatal({
        event: 'journal.moved',
        path: opened.path,
        reason: 'it was removed or replaced while it was in use',
      });
      broken(75);
    },
    stateDirectory,
    log,
    planTurn: () => broker.planTurn(),
  });
  try {
    if (reserve.missingBytes() > 0) housekeeping.degradeForSpace();
    try {
      restore(core, opened.state);
    } catch (error) {
      // What was read was no journal: the next start sets it aside.
      onBroken(error);
      return await brokenDown;
    }
    broker.planTurn();
    const swept = directories.sweep((id) => core.sessions.has(id), `${core.identity.generation}`);
    if (swept.directories > 0) log.info({ event: 'sessions.swept', directories: swept.directories });
    await server.listen();
    journal.onGrown = () => housekeeping.watchWal();
    housekeeping.start();
    logReady(log, options, place, stateDirectory, core, opened);
    const ended = await Promise.race([stopRequested, brokenDown]);
    if (typeof ended === 'number') return ended;
    log.info({ event: 'broker.stopping', signal: ended });
    server.close();
    await broker.stop();
    log.info({ event: 'broker.stopped' });
    return 0;
  } finally {
    housekeeping.stop();
    server.close();
    broker.abandon();
    const rescued = closeJournal(opened, housekeeping.journalInPlace, stampOf(new Date()));
    if (rescued !== null) log.error({ event: 'journal.rescued', path: rescued });
  }
}

/** Logs an event that may come very often: the first of each second, with the number since the last line. */
function sparingly(log: Logger, line: { readonly event: string; readonly reason: string }): () => void {
  let saidAt = Number.NEGATIVE_INFINITY;
  let times = 0;
  return () => {
    times++;
    const now = performance.now();
    if (now - saidAt < 1000) return;
    log.warn({ ...line, times });
    saidAt = now;
    times = 0;
  };
}

/** Opens the journal; on a full disk it gives up the reserve, and then waits for space instead of failing again and again. Null: stopped meanwhile. */
async function openWithSpace(
  stateDirectory: string,
  options: BrokerOptions,
  reserve: SpaceReserve,
  log: Logger,
  stopRequested: Promise<string>,
): Promise<OpenedJournal | null> {
  for (let said = false; ; said = true) {
    try {
      return openJournal(stateDirectory, options.durability, stampOf(new Date()));
    } catch (error) {
      if (!isLackOfSpace(error)) throw error;
      if (reserve.release()) continue;
      if (!said)
        log.error({
          event: 'broker.waiting_for_space',
          stateDir: stateDirectory,
          missingBytes: reserve.missingBytes(),
        });
      const waited = await Promise.race([stopRequested, delay(SPACE_RETRY_MS, null)]);
      if (waited !== null) return null;
    }
  }
}

/** A time as it stands in names of files: 20260101T120000Z. */
function stampOf(date: Date): string {
  return date.toISOString().replace(/[-:]|\.\d+/g, '');
}

/** What may pass by itself: no space, a file held by another process, a disk that fails. Everything else is a mistake and must not be repeated. */
function isDiskTrouble(error: unknown): boolean {
  return /^SQLITE_(FULL|IOERR|BUSY|LOCKED|READONLY|NOMEM|CANTOPEN)/.test((error as NodeJS.ErrnoException).code ?? '');
}

function isLackOfSpace(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return (
    code === 'ENOSPC' || code === 'SQLITE_FULL' || code === 'SQLITE_IOERR_SHMSIZE' || code === 'SQLITE_IOERR_WRITE'
  );
}

function retentionOf({ retainHours, retainJobs, retainMib }: Settings): Retention {
  return { maxAgeMs: retainHours * 3_600_000, maxJobs: retainJobs, maxBytes: retainMib * 1_048_576 };
}

function createCore(options: BrokerOptions, opened: OpenedJournal, directories: SessionDirectories): Core {
  const archive = new JournalArchive(opened, directories);
  const identity = { version: ownVersion(), instance: opened.instance, generation: opened.generation };
  return newCore(options.settings, identity, archive, new SystemEntropy(), SYSTEM_CLOCK.now(), opened.nextSeq);
}

function logReady(
  log: Logger,
  options: BrokerOptions,
  place: SocketPlace,
  stateDir: string,
  core: Core,
  opened: OpenedJournal,
): void {
  const { instance, generation } = core.identity;
  const unfinishedJobs = opened.state.jobs.length;
  const sessions = opened.state.sessions.length;
  const { durability } = options;
  log.info({
    event: 'broker.ready',
    socket: place.path,
    stateDir,
    durability,
    instance,
    generation,
    unfinishedJobs,
    sessions,
  });
}

function ownVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
