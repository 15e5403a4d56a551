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

/** Numbers of the states in which a row counts. */
const ENDS = [...['completed', 'discarded', 'cancelled'].map((state) => STATE_NUMBER[state] as number), TOMBSTONE];

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

  /** Counts by one walk over a covering index, without sorting. */
  #counted(): Map<number, number> {
    if (this.#numbers !== null) return this.#numbers;
    const columns = ENDS.map((state) => `count(*) FILTER (WHERE state = ${state})`).join(', ');
    const counts = this.#database.prepare(`SELECT ${columns} FROM outcomes`).raw().get() as number[];
    this.#numbers = new Map(ENDS.map((state, at) => [state, counts[at] ?? 0]));
    return this.#numbers;
  }
}
