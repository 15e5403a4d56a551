/**
 * Where the unfinished jobs are, so that a start finds them without walking over the history: jobs from the frontier on are few and are all looked at; of
 * those before it the unfinished ones are listed. The frontier follows the newest job in steps, inside the transactions of the journal; most jobs have
 * ended before it reaches them and are never listed.
 */
import type { Database, Statement } from 'better-sqlite3';
import { type JobRow, UNFINISHED_COLUMNS, unfinishedRow } from './rows.js';
import { DamagedJournalError } from './schema.js';

/** The frontier moves when this many jobs lie beyond it, */
const FAR = 1024;
/** and leaves so many of them beyond it. */
const NEAR = 512;

export class Frontier {
  readonly #database: Database;
  readonly #list: Statement;
  readonly #unlist: Statement;
  readonly #move: Statement;
  /** The first job that is not before the frontier, as the file has it. */
  #stored: number;
  /** The same as the transaction that is being written will have it. */
  #pending: number;
  #newest = 0;

  /** @throws DamagedJournalError */
  constructor(database: Database) {
    this.#database = database;
    this.#list = database.prepare(
      `INSERT INTO open_jobs SELECT seq FROM jobs WHERE seq >= ? AND seq < ? AND NOT EXISTS (SELECT 1 FROM outcomes WHERE outcomes.seq = jobs.seq)`,
    );
    this.#unlist = database.prepare('DELETE FROM open_jobs WHERE seq = ?');
    this.#move = database.prepare(`UPDATE meta SET value = ? WHERE key = 'frontier'`);
    this.#stored = Number(database.prepare(`SELECT value FROM meta WHERE key = 'frontier'`).pluck().get());
    if (!Number.isSafeInteger(this.#stored))
      throw new DamagedJournalError('the journal does not say where its unfinished jobs are');
    this.#pending = this.#stored;
  }

  /** The first number that is not before the frontier. No new job may have a lower one: it would lie among those that are only looked up in the list. */
  get first(): number {
    return this.#stored;
  }

  /** A job is made by the transaction that is being written. */
  added(seq: number): void {
    this.#newest = seq;
  }

  /** A job is settled by the transaction that is being written. */
  settled(seq: number): void {
    if (seq < this.#stored) this.#unlist.run(seq);
  }

  /** The last thing a transaction does. */
  advance(): void {
    this.#pending = this.#stored;
    if (this.#newest - this.#stored < FAR) return;
    this.#pending = this.#newest - NEAR;
    this.#list.run(this.#stored, this.#pending);
    this.#move.run(String(this.#pending));
  }

  /** The transaction is in the file. */
  committed(): void {
    this.#stored = this.#pending;
  }

  /** All unfinished jobs, oldest first. */
  unfinished(): JobRow[] {
    const read = (which: string, ...values: number[]): JobRow[] => {
      const open = 'NOT EXISTS (SELECT 1 FROM outcomes WHERE outcomes.seq = jobs.seq)';
      const sql = `SELECT ${UNFINISHED_COLUMNS} FROM jobs WHERE ${which} AND ${open} ORDER BY seq`;
      return (this.#database.prepare(sql).raw().all(values) as unknown[][]).map(unfinishedRow);
    };
    return [...read('jobs.seq IN (SELECT seq FROM open_jobs)'), ...read('jobs.seq >= ?', this.#stored)];
  }
}
