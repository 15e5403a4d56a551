/**
 * A lock that lasts as long as its process: a write lock of SQLite on a file of its own. The kernel gives it back when the process dies, however
 * it dies, and keeps it while the process is stopped; so nobody is ever taken for dead because it does not answer. The holder's pid stands in
 * the file for messages only.
 */
import { closeSync, openSync, statSync } from 'node:fs';
import SQLite, { type Database } from 'better-sqlite3';

/** How long the new holder waits for those who are just reading its predecessor's pid. */
const READERS_MS = 2000;

/** Another process holds the lock. */
export class LockedError extends Error {
  override readonly name = 'LockedError';
  constructor(
    readonly path: string,
    readonly pid: number | null,
  ) {
    super(`already running${pid === null ? '' : ` (pid ${pid})`}: ${path} is locked`);
  }
}

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
      begin(database);
      database.pragma(`busy_timeout = ${READERS_MS}`);
      notePid(database);
      if (!database.inTransaction) begin(database);
    } catch (error) {
      const pid = isBusy(error) ? readPid(database) : null;
      database.close();
      if (isBusy(error)) throw new LockedError(path, pid);
      throw error;
    }
    if (inodeOf(path) !== inode) {
      database.close();
      return LifeLock.take(path);
    }
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

function begin(database: Database): void {
  database.exec('BEGIN IMMEDIATE');
}

/** Best effort: on a full disk the lock holds without a pid. */
function notePid(database: Database): void {
  try {
    database.exec(`CREATE TABLE IF NOT EXISTS holder (one INTEGER PRIMARY KEY CHECK (one = 1), pid INTEGER NOT NULL);
      INSERT OR REPLACE INTO holder (one, pid) VALUES (1, ${process.pid}); COMMIT;`);
  } catch (error) {
    if (isBusy(error)) throw error;
    if (database.inTransaction) database.exec('ROLLBACK');
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof SQLite.SqliteError && error.code.startsWith('SQLITE_BUSY');
}

function readPid(database: Database): number | null {
  try {
    return (database.prepare('SELECT pid FROM holder').pluck().get() as number | undefined) ?? null;
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
