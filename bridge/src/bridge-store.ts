/**
 * The bridge's own journal: the jobs it holds, their epochs and tokens, and the terminal messages it still owes. One small SQLite file, 0600.
 * It never holds a URL, a result, or op arguments; job tokens are in it because a restart inside the lease needs them.
 */
import { chmodSync, closeSync, existsSync, openSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { ConfigError } from './config-error.js';
import type { Job, JournalRecord } from './core/index.js';

/** Layout of the file; a newer one is refused. */
const SCHEMA_VERSION = 1;
/** Times are only known to a second across processes (suspend-clock.ts). */
const RESTORE_MARGIN_MS = 1_000;

/** The store of one bridge. */
export type BridgeStore = {
  /** The jobs whose lease is still running in this boot; everything else is removed. */
  readonly restore: (now: number) => Job[];
  /** Commits all records of one step together. */
  readonly commit: (records: readonly JournalRecord[]) => void;
  /** Reads the whole file. @throws SqliteError SQLITE_CORRUPT when it is damaged. */
  readonly check: () => void;
  readonly close: () => void;
};

/** Opens, or makes, `bridge.sqlite`. A file that is damaged is moved aside: leases end in 45 s, so nothing in it is worth a stopped runner. */
export function openStore(stateDir: string, bootId: string, onDamage: (movedTo: string) => void): BridgeStore {
  const path = join(stateDir, 'bridge.sqlite');
  try {
    return soundStoreOf(path, bootId);
  } catch (error) {
    if (!isDamage(error) || !existsSync(path)) throw error;
    const aside = `${path}.damaged-${statSync(path).mtimeMs.toFixed(0)}`;
    renameSync(path, aside);
    for (const suffix of ['-wal', '-shm']) if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
    onDamage(aside);
    return storeOf(path, bootId);
  }
}

/** Damage behind the first page shows only when the rows are read, and a restart must not fail on it again and again. */
function soundStoreOf(path: string, bootId: string): BridgeStore {
  const store = storeOf(path, bootId);
  try {
    store.check();
    return store;
  } catch (error) {
    store.close();
    throw error;
  }
}

function isDamage(error: unknown): boolean {
  return error instanceof Database.SqliteError && ['SQLITE_CORRUPT', 'SQLITE_NOTADB'].includes(error.code);
}

function storeOf(path: string, bootId: string): BridgeStore {
  closeSync(openSync(path, 'a', 0o600));
  chmodSync(path, 0o600);
  const database = new Database(path, { timeout: 5_000 });
  try {
    database.pragma('journal_mode = WAL');
    database.pragma('synchronous = FULL');
    const version = Number(database.pragma('user_version', { simple: true }));
    if (version > SCHEMA_VERSION)
      throw new ConfigError(`${path} was written by a newer reelhost: update, or give another --state-dir`);
    database.exec(
      'CREATE TABLE IF NOT EXISTS jobs (job_id TEXT PRIMARY KEY, boot_id TEXT NOT NULL, lease_until REAL NOT NULL, job TEXT NOT NULL) STRICT',
    );
    database.pragma(`user_version = ${SCHEMA_VERSION}`);
  } catch (error) {
    database.close();
    throw error;
  }
  const put = database.prepare(
    'INSERT INTO jobs (job_id, boot_id, lease_until, job) VALUES (?, ?, ?, ?) ON CONFLICT (job_id) DO UPDATE SET boot_id = excluded.boot_id, lease_until = excluded.lease_until, job = excluded.job',
  );
  const remove = database.prepare('DELETE FROM jobs WHERE job_id = ?');
  const write = database.transaction((records: readonly JournalRecord[]) => {
    for (const record of records) {
      if (record.kind === 'deleteJob') remove.run(record.jobId);
      else put.run(record.job.jobId, bootId, record.job.leaseUntil, textOf(record.job));
    }
  });
  return {
    restore: (now) => {
      database.prepare('DELETE FROM jobs WHERE boot_id <> ? OR lease_until <= ?').run(bootId, now + RESTORE_MARGIN_MS);
      const rows = database.prepare<[], { job: string }>('SELECT job FROM jobs').all();
      return rows.map((row) => jobOf(row.job));
    },
    check: () => {
      const found = database.pragma('quick_check(1)', { simple: true });
      if (found !== 'ok') throw new Database.SqliteError(String(found), 'SQLITE_CORRUPT');
      const torn = database.prepare('SELECT 1 FROM jobs WHERE json_valid(job) = 0 LIMIT 1').get();
      if (torn !== undefined) throw new Database.SqliteError('a row is not readable', 'SQLITE_CORRUPT');
    },
    commit: (records) => {
      if (records.length > 0) write.immediate(records);
    },
    close: () => database.close(),
  };
}

/** What is worth keeping of a job: neither the running op (the gateway asks again) nor what belongs to one connection. */
function textOf(job: Job): string {
  const session = job.session === null ? null : { ...job.session, state: 'reopening', dir: '' };
  const ending = job.ending === null ? null : { ...job.ending, sent: null };
  return JSON.stringify({ ...job, op: null, lastResponse: null, session, ending });
}

function jobOf(text: string): Job {
  // Written by textOf of this version: user_version guards the layout.
  const job: Job = JSON.parse(text);
  return { ...job, leaseUntil: job.leaseUntil - RESTORE_MARGIN_MS };
}
