/**
 * One bridge per state directory. The lock is an exclusive SQLite transaction that lives as long as the process: the operating system frees it on any death,
 * and a frozen holder still holds it. Never decided by whether somebody answers.
 */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';

/** Another bridge runs on this state directory. Exit code 5. */
export class AlreadyRunning extends Error {
  constructor(stateDir: string) {
    super(`a bridge is already running on ${stateDir}`);
    this.name = 'AlreadyRunning';
  }
}

/** Takes the lock; the returned function gives it back. @throws AlreadyRunning */
export function lockStateDir(stateDir: string): () => void {
  const path = join(stateDir, 'bridge.lock');
  closeSync(openSync(path, 'a', 0o600));
  const database = new Database(path, { timeout: 0 });
  try {
    database.pragma('journal_mode = MEMORY');
    database.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY'))
      throw new AlreadyRunning(stateDir);
    throw error;
  }
  return () => database.close();
}
