/**
 * A lock that lasts as long as its process: a write lock of SQLite on an empty file of its own. The kernel gives it back when the process dies, however
 * it dies, and keeps it while the process is stopped; so nobody is ever taken for dead because it does not answer. The holder's pid stands in a file
 * beside it, for messages only.
 */
import { closeSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import SQLite, { type Database } from 'better-sqlite3';

/** Another process holds the lock. */
export class LockedError extends Error {
  override readonly name = 'LockedError';
  constructor(
    readonly path: string,
    readonly pid: number | null,
  ) {
    super(
      `already running${pid === null ? '' : ` (pid ${pid})`}: ${path} is locked; stop that broker first, or name another --socket and another --state-dir`,
    );
  }
}

/** A lock that this process holds. */
export class LifeLock {
  readonly path: string;
  readonly #database: Database;
  readonly #inode: number;

  private constructor(path: string, database: Database, inode: number) {
    this.path = path;
    this.#database = database;
    this.#inode = inode;
  }

  /** Takes the lock. @throws LockedError when it is taken. */
  static take(path: string): LifeLock {
    closeSync(openSync(path, 'a', 0o600));
    const inode = statSync(path).ino;
    const database = new SQLite(path, { timeout: 0 });
    try {
      // Never committed: nothing is written, so there is nothing to wait for and nothing to be damaged.
      database.exec('BEGIN IMMEDIATE');
    } catch (error) {
      database.close();
      throw isBusy(error) ? new LockedError(path, readPid(path)) : error;
    }
    if (inodeOf(path) !== inode) {
      database.close();
      return LifeLock.take(path);
    }
    notePid(path);
    return new LifeLock(path, database, inode);
  }

  /** Whether the file at the path is still the one that is locked. */
  get inPlace(): boolean {
    return inodeOf(this.path) === this.#inode;
  }

  /** Takes the lock anew after its file was removed. @throws LockedError when somebody was faster. */
  retake(): LifeLock {
    const again = LifeLock.take(this.path);
    this.release();
    return again;
  }

  release(): void {
    this.#database.close();
  }
}

/** Best effort: on a full disk the lock holds without a pid. */
function notePid(path: string): void {
  try {
    writeFileSync(`${path}.pid`, `${process.pid}\n`, { mode: 0o600 });
  } catch {
    // Who finds the lock taken is told so without a number.
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof SQLite.SqliteError && error.code.startsWith('SQLITE_BUSY');
}

function readPid(path: string): number | null {
  try {
    return Number(/^(\d+)\n$/.exec(readFileSync(`${path}.pid`, 'latin1'))?.[1] ?? Number.NaN) || null;
  } catch {
    return null;
  }
}

function inodeOf(path: string): number | null {
  try {
    return statSync(path).ino;
  } catch {
    return null;
  }
}
