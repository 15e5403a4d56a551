/**
 * Keeps the journal small, in slices short enough that nobody waits for them: what is too old, too many or too large goes, oldest first; freed
 * pages go back to the file system; the WAL goes back into the file.
 *
 * Never removed: anything unfinished, and the jobs of a session that is not closed, because their ids must keep answering.
 */
import type { Database, Statement } from 'better-sqlite3';
import { Census } from './census.js';

export interface Retention {
  readonly maxAgeMs: number;
  readonly maxJobs: number;
  readonly maxBytes: number;
}

/** One slice of work takes about this long at most. */
const SLICE_MS = 8;
const BATCH = 64;
/** Free pages above which they are given back. */
const FREE_PAGES = 256;
const VACUUM_PAGES = 128;

export class Maintenance {
  readonly #database: Database;
  readonly #retention: Retention;
  readonly #doomed: Statement;
  readonly #dropJob: Statement;
  readonly #dropOutcome: Statement;
  readonly #dropPayloads: Statement;
  readonly #oldSessions: Statement;
  readonly #dropSessionJobs: Statement;
  readonly #dropSessionOutcomes: Statement;
  readonly #dropSessionPayloads: Statement;
  readonly #dropSession: Statement;
  readonly #census: Census;

  constructor(database: Database, retention: Retention, census = new Census(database)) {
    this.#database = database;
    this.#census = census;
    this.#retention = retention;
    this.#doomed = database
      .prepare(
        `SELECT outcomes.seq FROM outcomes CROSS JOIN jobs USING (seq) WHERE completed_at < ?
       AND (session_id IS NULL OR session_id NOT IN (SELECT id FROM sessions WHERE closed_at IS NULL)) ORDER BY completed_at LIMIT ?`,
      )
      .pluck();
    this.#dropJob = database.prepare('DELETE FROM jobs WHERE seq = ?');
    this.#dropOutcome = database.prepare('DELETE FROM outcomes WHERE seq = ? RETURNING state').pluck();
    this.#dropPayloads = database.prepare('DELETE FROM payloads WHERE key IN (?, ?)');
    this.#oldSessions = database
      .prepare('SELECT id FROM sessions WHERE closed_at < ? ORDER BY closed_at LIMIT ?')
      .pluck();
    this.#dropSessionPayloads = database.prepare(
      `DELETE FROM payloads WHERE key IN
       (SELECT seq * 2 + side FROM jobs, (SELECT 0 AS side UNION ALL SELECT 1) WHERE session_id = ?)`,
    );
    this.#dropSessionOutcomes = database
      .prepare('DELETE FROM outcomes WHERE seq IN (SELECT seq FROM jobs WHERE session_id = ?) RETURNING state')
      .pluck();
    this.#dropSessionJobs = database.prepare('DELETE FROM jobs WHERE session_id = ?');
    this.#dropSession = database.prepare('DELETE FROM sessions WHERE id = ?');
  }

  /** Does a slice; true when there is more to do. `now` is UTC ms, `elapsed` a monotonic clock in ms. */
  slice(now: number, elapsed: () => number): boolean {
    const until = elapsed() + SLICE_MS;
    let excess = this.#excess();
    while (elapsed() < until) {
      const oldest = now - this.#retention.maxAgeMs;
      const dropped = this.#dropBatch(
        excess > 0 ? Number.MAX_SAFE_INTEGER : oldest,
        excess > 0 ? Math.min(excess, BATCH) : BATCH,
      );
      if (dropped === 0) return this.#giveBack();
      excess -= dropped;
    }
    return true;
  }

  /** How many jobs must go whatever their age. */
  #excess(): number {
    const finished = this.#census.total();
    const tooMany = finished - this.#retention.maxJobs;
    const pages = this.#pragma('page_count') - this.#pragma('freelist_count');
    const bytes = pages * this.#pragma('page_size');
    const tooLarge =
      bytes > this.#retention.maxBytes ? Math.ceil((finished * (bytes - this.#retention.maxBytes)) / bytes) : 0;
    return Math.max(tooMany, tooLarge);
  }

  #dropBatch(before: number, limit: number): number {
    const removed: number[] = [];
    const dropped = this.#database
      .transaction((): number => {
        const jobs = this.#doomed.all(before, limit) as number[];
        for (const seq of jobs) {
          this.#dropPayloads.run(seq * 2, seq * 2 + 1);
          removed.push(...(this.#dropOutcome.all(seq) as number[]));
          this.#dropJob.run(seq);
        }
        const sessions = before === Number.MAX_SAFE_INTEGER ? [] : (this.#oldSessions.all(before, 4) as string[]);
        for (const id of sessions) {
          this.#dropSessionPayloads.run(id);
          removed.push(...(this.#dropSessionOutcomes.all(id) as number[]));
          this.#dropSessionJobs.run(id);
          this.#dropSession.run(id);
        }
        return jobs.length + sessions.length;
      })
      .immediate();
    this.#census.removed(removed);
    return dropped;
  }

  /** Gives free pages back to the file system, a few at a time. */
  #giveBack(): boolean {
    if (this.#pragma('freelist_count') <= FREE_PAGES) return false;
    this.#database.pragma(`incremental_vacuum(${VACUUM_PAGES})`);
    return this.#pragma('freelist_count') > FREE_PAGES;
  }

  /** Moves the WAL into the file and cuts it, as far as that goes now: it never waits for another process that reads. */
  truncateWal(): void {
    const patience = this.#pragma('busy_timeout');
    this.#database.pragma('busy_timeout = 0');
    try {
      this.#database.pragma('wal_checkpoint(TRUNCATE)');
    } finally {
      this.#database.pragma(`busy_timeout = ${patience}`);
    }
  }

  #pragma(name: string): number {
    return this.#database.pragma(name, { simple: true }) as number;
  }
}
