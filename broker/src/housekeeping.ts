/**
 * What has to be looked after while the broker runs: the disk, the journal's size, the socket file and the lock files. None of it is in a job's way.
 */
import { statSync } from 'node:fs';
import type { Core } from './core/index.js';
import type { Maintenance } from './journal/maintenance.js';
import type { Logger } from './log.js';
import type { SocketServer } from './socket/server.js';
import type { LifeLock } from './state/life-lock.js';
import type { SpaceReserve } from './state/space-reserve.js';

const INTERVAL_MS = 5000;
/** The first round waits until those who waited for the broker are served. */
const FIRST_ROUND_MS = 200;
/** Between two slices of journal maintenance when there is more to do. */
const SLICE_PAUSE_MS = 40;
/** A WAL that cannot shrink (another process reads an old state) stops new work above this. */
const MAX_WAL_BYTES = 268_435_456;

export interface HousekeepingParts {
  readonly core: Core;
  readonly maintenance: Maintenance;
  readonly reserve: SpaceReserve;
  readonly server: SocketServer;
  readonly locks: LifeLock[];
  readonly walPath: string;
  readonly stateDirectory: string;
  readonly log: Logger;
  /** Runs a turn, so that what waited for the end of a degradation goes on. */
  readonly planTurn: () => void;
}

export class Housekeeping {
  readonly #parts: HousekeepingParts;
  #timer: NodeJS.Timeout | null = null;
  #first: NodeJS.Timeout | null = null;
  #slices: NodeJS.Timeout | null = null;
  #socketLost = false;

  constructor(parts: HousekeepingParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#timer = setInterval(() => void this.#round(), INTERVAL_MS);
    this.#first = setTimeout(() => void this.#round(), FIRST_ROUND_MS);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    if (this.#first !== null) clearTimeout(this.#first);
    if (this.#slices !== null) clearTimeout(this.#slices);
  }

  /** A write failed for lack of space (or another trouble of the disk): no new work until it is over. */
  degrade(code: 'disk_full' | 'journal_error', message: string): void {
    const { core, log } = this.#parts;
    if (core.degraded !== null) return;
    core.degraded = { code, message, since: Date.now() };
    log.error({ event: 'broker.degraded', code, reason: message });
  }

  async #round(): Promise<void> {
    this.#watchDisk();
    this.#slice();
    await this.#watchSocket();
    this.#watchLocks();
  }

  #watchDisk(): void {
    const { core, reserve, walPath, maintenance, log } = this.#parts;
    const walBytes = statSync(walPath, { throwIfNoEntry: false })?.size ?? 0;
    if (walBytes > MAX_WAL_BYTES)
      this.degrade('journal_error', `another process reads the journal for long: its WAL has ${walBytes} bytes`);
    if (core.degraded === null) {
      if (!reserve.held && !reserve.take()) this.degrade('disk_full', this.#spaceMessage());
      return;
    }
    try {
      maintenance.truncateWal();
    } catch (error) {
      log.debug({ event: 'journal.checkpoint_failed', reason: (error as Error).message });
    }
    const stillLarge = (statSync(walPath, { throwIfNoEntry: false })?.size ?? 0) > MAX_WAL_BYTES;
    if (stillLarge) return;
    if (!reserve.take()) {
      core.degraded = { ...core.degraded, message: this.#spaceMessage() };
      return;
    }
    log.info({ event: 'broker.recovered', afterMs: Date.now() - core.degraded.since });
    core.degraded = null;
    core.dispatchWanted = true;
    this.#parts.planTurn();
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

  async #watchSocket(): Promise<void> {
    const { server, log } = this.#parts;
    if (server.inPlace) {
      this.#socketLost = false;
      return;
    }
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

  #watchLocks(): void {
    const { locks, log } = this.#parts;
    for (const [at, lock] of locks.entries()) {
      if (lock.inPlace) continue;
      try {
        locks[at] = lock.retake();
        log.warn({ event: 'lock.restored', path: lock.path });
      } catch (error) {
        log.error({ event: 'lock.lost', path: lock.path, reason: (error as Error).message });
      }
    }
  }
}
