/**
 * What has to be looked after while the broker runs: the disk, the journal's size, the socket file and the lock files. None of it is in a job's way.
 */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { makePrivateFolder } from '@reelhost/log/private-folder';
import type { Core } from './core/index.js';
import type { Maintenance } from './journal/maintenance.js';
import { DamagedJournalError } from './journal/schema.js';
import type { Logger } from './log.js';
import type { SocketServer } from './socket/server.js';
import type { LifeLock } from './state/life-lock.js';
import type { SpaceReserve } from './state/space-reserve.js';

const INTERVAL_MS = 5000;
/** The first round waits until those who waited for the broker are served. */
const FIRST_ROUND_MS = 200;
/** Between two slices of journal maintenance when there is more to do. */
const SLICE_PAUSE_MS = 40;
/** How often the size of the WAL is looked at: it can grow by some MiB in this time. */
const WAL_INTERVAL_MS = 250;

/** What housekeeping looks after. */
export interface HousekeepingParts {
  readonly core: Core;
  readonly maintenance: Maintenance;
  readonly reserve: SpaceReserve;
  readonly server: SocketServer;
  readonly locks: LifeLock[];
  readonly journalPath: string;
  readonly walPath: string;
  /** Writes down how far the journal's log is. */
  readonly noteUse: () => void;
  /** The journal is beyond use: the process must end. */
  readonly onBroken: (error: DamagedJournalError) => void;
  /** The journal's file is not in its place, but its folder is: the process must end, so that the next one has a journal in its place again. */
  readonly onMoved: () => void;
  readonly stateDirectory: string;
  readonly log: Logger;
  /** Runs a turn, so that what waited for the end of a degradation goes on. */
  readonly planTurn: () => void;
}

/** Everything the broker does now and then; starts and stops with it. */
export class Housekeeping {
  readonly #parts: HousekeepingParts;
  #timer: NodeJS.Timeout | null = null;
  #first: NodeJS.Timeout | null = null;
  #walTimer: NodeJS.Timeout | null = null;
  /** New work is refused because the WAL is too large, and for no other reason. */
  #walTooLarge = false;
  #slices: NodeJS.Timeout | null = null;
  #socketLost = false;
  readonly #locksLost = new Set<string>();
  readonly #journalInode: number | null;
  /** How often in a row the journal was not in its place. */
  #movedTimes = 0;

  constructor(parts: HousekeepingParts) {
    this.#parts = parts;
    this.#journalInode = inodeOf(parts.journalPath);
  }

  start(): void {
    this.#timer = setInterval(() => void this.#round(), INTERVAL_MS);
    this.#first = setTimeout(() => void this.#round(), FIRST_ROUND_MS);
    this.#walTimer = setInterval(() => this.#watchJournal(), WAL_INTERVAL_MS);
    this.#noteUse();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    if (this.#first !== null) clearTimeout(this.#first);
    if (this.#walTimer !== null) clearInterval(this.#walTimer);
    if (this.#slices !== null) clearTimeout(this.#slices);
  }

  /** A write failed for lack of space. */
  degradeForSpace(): void {
    this.degrade('disk_full', this.#spaceMessage());
  }

  /** A write failed: no new work until it is over. */
  degrade(code: 'disk_full' | 'journal_error', message: string): void {
    const { core, log } = this.#parts;
    if (core.degraded !== null) return;
    core.degraded = { code, message, since: Date.now() };
    log.error({ event: 'broker.degraded', code, reason: message });
  }

  /** Whether the journal is still the file that was opened. */
  get journalInPlace(): boolean {
    try {
      return inodeOf(this.#parts.journalPath) === this.#journalInode;
    } catch {
      return false;
    }
  }

  async #round(): Promise<void> {
    try {
      this.#watchDisk();
    } catch (error) {
      // E.g. the whole state directory is gone.
      this.degrade('journal_error', (error as Error).message);
    }
    // Forgetting writes as well: not while the WAL must not grow.
    if (!this.#walTooLarge) this.#slice();
    const locked = this.#watchLocks();
    await this.#watchSocket(locked);
  }

  #watchDisk(): void {
    const { core, journalPath } = this.#parts;
    if (!this.journalInPlace) {
      this.degrade(
        'journal_error',
        `${journalPath} was removed or replaced while it was in use; start the broker anew`,
      );
      return;
    }
    if (core.degraded === null) {
      // Also when nothing was written yet: who fills the disk need not be the broker.
      const lack = this.#lack();
      if (lack !== null) this.degrade(lack.code, lack.message);
    } else if (!this.#walTooLarge) this.#recover();
  }

  #watchJournal(): void {
    const { journalPath, onBroken, onMoved } = this.#parts;
    if (sizeOf(journalPath) === 0) {
      // What it had is gone. The next start sets it aside; every job that is still taken would be lost as well.
      return onBroken(new DamagedJournalError(`${journalPath} was emptied while it was in use`));
    }
    // Twice, because a folder that is being removed is there for a moment without its files.
    this.#movedTimes = this.#isMoved ? this.#movedTimes + 1 : 0;
    if (this.#movedTimes === 2) return onMoved();
    this.#noteUse();
    this.watchWal();
  }

  get #isMoved(): boolean {
    return !this.journalInPlace && sizeOf(this.#parts.stateDirectory) !== null;
  }

  #noteUse(): void {
    try {
      this.#parts.noteUse();
    } catch (error) {
      this.#parts.log.debug({ event: 'journal.mark_failed', reason: (error as Error).message });
    }
  }

  /**
   * A WAL that cannot shrink, because another process reads an old state, ends the taking of new work; what runs may still end. It goes on by itself
   * as soon as the reader is gone.
   */
  watchWal(): void {
    try {
      const large = this.#walIsTooLarge();
      if (large && !this.#walTooLarge) {
        const { walPath, core } = this.#parts;
        this.#walTooLarge = core.degraded === null;
        const text = `another process reads the journal for long: ${walPath} has more than ${core.settings.maxWalBytes} bytes`;
        this.degrade('journal_error', text);
      } else if (!large && this.#walTooLarge) {
        this.#walTooLarge = false;
        this.#recover();
      }
    } catch (error) {
      this.degrade('journal_error', (error as Error).message);
    }
  }

  #walIsTooLarge(): boolean {
    const { walPath, core } = this.#parts;
    const tooLarge = (): boolean =>
      (statSync(walPath, { throwIfNoEntry: false })?.size ?? 0) > core.settings.maxWalBytes;
    if (!tooLarge()) return false;
    this.#shrinkWal();
    return tooLarge();
  }

  #shrinkWal(): void {
    try {
      this.#parts.maintenance.truncateWal();
    } catch (error) {
      this.#parts.log.debug({ event: 'journal.checkpoint_failed', reason: (error as Error).message });
    }
    this.#noteUse();
  }

  /** Takes new work again, if there is room for the reserve. */
  #recover(): void {
    const { core, log } = this.#parts;
    if (core.degraded === null) return;
    this.#shrinkWal();
    const lack = this.#lack();
    if (lack !== null) {
      core.degraded = { ...core.degraded, ...lack };
      return;
    }
    log.info({ event: 'broker.recovered', afterMs: Date.now() - core.degraded.since });
    core.degraded = null;
    core.dispatchWanted = true;
    this.#parts.planTurn();
  }

  /** What keeps new work out: no room for the reserve, or something else, no file descriptor say, for which it cannot be made. */
  #lack(): { readonly code: 'disk_full' | 'journal_error'; readonly message: string } | null {
    const { reserve } = this.#parts;
    const held = reserve.take();
    if (reserve.missingBytes() === 0) {
      if (held) return null;
      if (reserve.trouble !== null) return { code: 'journal_error', message: reserve.trouble };
    }
    return { code: 'disk_full', message: this.#spaceMessage() };
  }

  #spaceMessage(): string {
    const { reserve, stateDirectory } = this.#parts;
    return `${reserve.missingBytes()} bytes are missing in ${stateDirectory}`;
  }

  #slice(): void {
    if (this.#slices !== null) return;
    const { maintenance, log } = this.#parts;
    try {
      if (!maintenance.slice(Date.now(), () => performance.now())) return;
    } catch (error) {
      log.warn({ event: 'journal.maintenance_failed', reason: (error as Error).message });
      return;
    }
    this.#slices = setTimeout(() => {
      this.#slices = null;
      this.#slice();
    }, SLICE_PAUSE_MS);
  }

  /** Only the holder of the lock may bind. */
  async #watchSocket(locked: boolean): Promise<void> {
    const { server, log } = this.#parts;
    if (server.inPlace) {
      this.#socketLost = false;
      return;
    }
    if (!locked) return;
    try {
      if (await server.restore()) {
        log.warn({ event: 'socket.restored', reason: 'somebody removed the socket file; it is bound again' });
        return;
      }
      if (!this.#socketLost)
        log.error({
          event: 'socket.replaced',
          reason: 'something else is at the path of the socket; it was left untouched',
        });
    } catch (error) {
      if (!this.#socketLost) log.error({ event: 'socket.lost', reason: (error as Error).message });
    }
    this.#socketLost = true;
  }

  /** Takes removed lock files anew. False when the lock of the socket, the first one, could not be taken. */
  #watchLocks(): boolean {
    const { locks, log } = this.#parts;
    for (const [at, lock] of locks.entries()) {
      if (lock.inPlace) {
        this.#locksLost.delete(lock.path);
        continue;
      }
      try {
        // The socket's directory may be gone as well; it comes back as private as what is in it.
        if (at === 0) makePrivateFolder(dirname(lock.path));
        locks[at] = lock.retake();
        log.warn({ event: 'lock.restored', path: lock.path });
      } catch (error) {
        if (!this.#locksLost.has(lock.path))
          log.error({ event: 'lock.lost', path: lock.path, reason: (error as Error).message });
        this.#locksLost.add(lock.path);
      }
    }
    return locks[0]?.inPlace === true;
  }
}

function inodeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.ino ?? null;
}

/** Null when there is nothing, or nothing can be seen. */
function sizeOf(path: string): number | null {
  try {
    return statSync(path, { throwIfNoEntry: false })?.size ?? null;
  } catch {
    return null;
  }
}
