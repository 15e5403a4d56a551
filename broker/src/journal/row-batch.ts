/**
 * Rows of one kind within a transaction, several per statement: a good part of what a small row costs is the call that writes it. What was added is in the file
 * after {@link RowBatch.finish}; until then nobody may read it.
 */
import type { Database, Statement } from 'better-sqlite3';

/** Rows per statement. */
const ROWS = 8;

type Value = string | number | null;

export class RowBatch {
  readonly #columns: number;
  readonly #several: Statement;
  readonly #one: Statement;
  #values: Value[] = [];

  /** `into`: the statement up to and with VALUES. `row`: one row of it, e.g. `(?, ?, 0)`. */
  constructor(database: Database, into: string, row: string) {
    this.#columns = row.split('?').length - 1;
    this.#one = database.prepare(`${into} ${row}`);
    this.#several = database.prepare(`${into} ${Array.from({ length: ROWS }, () => row).join(', ')}`);
  }

  /** Adds the values of one row. @throws SqliteError */
  add(row: readonly Value[]): void {
    for (const value of row) this.#values.push(value);
    if (this.#values.length < ROWS * this.#columns) return;
    this.#several.run(this.#values);
    this.#values.length = 0;
  }

  /** Writes what has been added so far. @throws SqliteError */
  finish(): void {
    const values = this.#values;
    if (values.length === 0) return;
    for (let at = 0; at < values.length; at += this.#columns) this.#one.run(values.slice(at, at + this.#columns));
    values.length = 0;
  }

  /** Forgets what was added: the transaction has failed. */
  drop(): void {
    this.#values.length = 0;
  }
}
