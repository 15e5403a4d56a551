/**
 * How many finished jobs there are, by state: counted once, when somebody first asks, and followed from then on. Counting again would cost every
 * status and every clean-up a walk over the whole history.
 *
 * Three things change the numbers, each told when it is in the file: jobs that ended, tombstones, and what retention removed.
 */
import type { Database } from 'better-sqlite3';
import { JOB_STATES, type Job } from '../core/index.js';
import { STATE_NUMBER } from './rows.js';
import { TOMBSTONE } from './schema.js';

const COMPLETED = STATE_NUMBER['completed'] as number;

export class Census {
  readonly #database: Database;
  /** By state; null before the first question. */
  #numbers: Map<number, number> | null = null;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Finished jobs by the name of their state; `expired` are those of which only the id is kept. */
  byState(): Record<string, number> {
    const named = [...this.#counted()].map(([state, count]) => [JOB_STATES[state] ?? 'expired', count] as const);
    return Object.fromEntries(named.filter(([, count]) => count > 0));
  }

  /** All finished jobs. */
  total(): number {
    let total = 0;
    for (const count of this.#counted().values()) total += count;
    return total;
  }

  /** These jobs were written; each is written once after it has ended. */
  written(jobs: readonly Job[]): void {
    if (this.#numbers === null) return;
    for (const job of jobs) if (job.completedAt !== null) this.#add(STATE_NUMBER[job.state] as number, 1);
  }

  /** Of finished jobs that were in these states only the id is left. */
  buried(states: readonly number[]): void {
    for (const state of states) {
      this.#add(state, -1);
      this.#add(TOMBSTONE, 1);
    }
  }

  /** Finished jobs that were in these states are no longer in the journal. */
  removed(states: readonly number[]): void {
    for (const state of states) this.#add(state, -1);
  }

  #add(state: number, change: number): void {
    this.#numbers?.set(state, (this.#numbers.get(state) ?? 0) + change);
  }

  /** Most jobs end well: all of them are counted page by page, the others one by one by a covering index. */
  #counted(): Map<number, number> {
    if (this.#numbers !== null) return this.#numbers;
    const all = this.#database.prepare('SELECT count(*) FROM outcomes').pluck().get() as number;
    const others = this.#database
      .prepare('SELECT state, count(*) FROM outcomes WHERE state <> ? GROUP BY state')
      .raw()
      .all(COMPLETED) as [number, number][];
    const numbers = new Map(others);
    numbers.set(COMPLETED, all - others.reduce((sum, [, count]) => sum + count, 0));
    this.#numbers = numbers;
    return numbers;
  }
}
