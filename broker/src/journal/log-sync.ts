/**
 * Makes what was committed survive a power cut: flushes the write-ahead log to the disk, beside the event loop or in its way.
 *
 * SQLite itself would flush at each COMMIT and hold up the whole process meanwhile. Instead the journal runs with `synchronous = NORMAL`, where SQLite
 * flushes around checkpoints only (the file can never be damaged by that), and every turn that wrote something is flushed here before anybody hears of it. A
 * flush that comes after a checkpoint has nothing left to do: the checkpoint has flushed the log and the file.
 */
import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs';

/** A disk that has answered in less, in ms, may be waited for. */
const QUICK_MS = 3;

export class LogSync {
  readonly #file: number;
  #lastMs = 0;

  /** Opens the log of a database in WAL mode: SQLite keeps this one file from its first transaction until the database is closed. @throws ErrnoException */
  constructor(databasePath: string) {
    this.#file = openSync(`${databasePath}-wal`, 'r');
  }

  /** Whether the last flush was so short that the way to another thread and back would be a good part of it. */
  get isQuick(): boolean {
    return this.#lastMs < QUICK_MS;
  }

  /** Flushes now, in the way of everything else. @throws ErrnoException; what was written since the last flush is in doubt then. */
  now(): void {
    const begun = performance.now();
    fdatasyncSync(this.#file);
    this.#lastMs = performance.now() - begun;
  }

  /** Flushes beside the event loop. */
  later(done: (error: NodeJS.ErrnoException | null) => void): void {
    const begun = performance.now();
    fdatasync(this.#file, (error) => {
      this.#lastMs = performance.now() - begun;
      done(error);
    });
  }

  close(): void {
    closeSync(this.#file);
  }
}
