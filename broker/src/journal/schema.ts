/**
 * The tables of the journal and how an older journal becomes a newer one. A migration is never changed once it was released; a new one is
 * added at the end. `PRAGMA user_version` is the number of migrations a file has seen.
 */
import type { Database } from 'better-sqlite3';

/**
 * jobs: one row per job, small (texts over {@link INLINE_BYTES} go to `payloads`), written when it is enqueued and started. outcomes: one row per finished
 * job, appended when it is settled and changed only by retention; what it says overrides the job's row. So an ordinary job is two rows that are written once.
 * `state` is an index into JOB_STATES, 7 is a tombstone: only the id is left.
 *
 * Unfinished are the jobs without an outcome. To find them at a start without walking over the history, `meta.frontier` divides the jobs: of those before it
 * the unfinished ones are listed in `open_jobs`, of those from it on (a thousand at most) all are looked at. See {@link Frontier}.
 */
const MIGRATIONS: readonly string[] = [
  `CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
   CREATE TABLE jobs (
     seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, task TEXT NOT NULL, queue TEXT NOT NULL, state INTEGER NOT NULL, attempt INTEGER NOT NULL,
     max_attempts INTEGER NOT NULL, timeout_ms INTEGER NOT NULL, delay_ms INTEGER, run_at INTEGER, created_at INTEGER NOT NULL, due_at INTEGER,
     completed_at INTEGER, interruptions INTEGER NOT NULL, session_id TEXT, needs_secrets INTEGER NOT NULL, execution TEXT, error TEXT,
     args_bytes INTEGER NOT NULL, args TEXT, result_bytes INTEGER NOT NULL, result TEXT);
   CREATE INDEX jobs_by_completion ON jobs (completed_at, state);
   CREATE INDEX jobs_by_session ON jobs (session_id, seq) WHERE session_id IS NOT NULL;
   CREATE TABLE payloads (key INTEGER PRIMARY KEY, body TEXT NOT NULL);
   CREATE TABLE sessions (
     id TEXT PRIMARY KEY, task TEXT NOT NULL, labels TEXT NOT NULL, state TEXT NOT NULL, runtime_id TEXT, opened_at INTEGER NOT NULL,
     closed_at INTEGER, stopped INTEGER NOT NULL) WITHOUT ROWID;
   CREATE INDEX sessions_by_end ON sessions (closed_at);
   CREATE TABLE schedules (
     id TEXT PRIMARY KEY, definition TEXT NOT NULL, next_at INTEGER, last_at INTEGER, cancelled_at INTEGER, last_job_id TEXT) WITHOUT ROWID;`,
  `ALTER TABLE sessions ADD COLUMN runtime_pid INTEGER;
   ALTER TABLE sessions ADD COLUMN lost_at INTEGER;`,
  `CREATE TABLE outcomes (
     seq INTEGER PRIMARY KEY, state INTEGER NOT NULL, completed_at INTEGER NOT NULL, result_bytes INTEGER NOT NULL, error TEXT, result TEXT);
   INSERT INTO outcomes SELECT seq, state, completed_at, result_bytes, error, result FROM jobs WHERE completed_at IS NOT NULL ORDER BY seq;
   CREATE TABLE open_jobs (seq INTEGER PRIMARY KEY);
   INSERT INTO open_jobs SELECT seq FROM jobs WHERE completed_at IS NULL;
   INSERT INTO meta SELECT 'frontier', ifnull(max(seq), 0) + 1 FROM jobs;
   DROP INDEX jobs_by_completion;
   ALTER TABLE jobs DROP COLUMN completed_at;
   ALTER TABLE jobs DROP COLUMN result_bytes;
   ALTER TABLE jobs DROP COLUMN result;
   CREATE INDEX outcomes_by_completion ON outcomes (completed_at, state);`,
];

/** A job as one row with its outcome, whose columns are NULL while it is unfinished; a condition may follow. */
export const SELECT_JOBS = `SELECT jobs.*, outcomes.state AS end_state, outcomes.completed_at, outcomes.error AS end_error, outcomes.result_bytes,
  outcomes.result FROM jobs LEFT JOIN outcomes USING (seq)`;

/** Texts up to this many UTF-16 units stand in the row itself. */
export const INLINE_BYTES = 2048;

/** The state number of a job of which only the id is kept. */
export const TOMBSTONE = 7;

/** Brings a journal to the present schema. @throws Error when it was written by a newer release. */
export function migrate(database: Database): void {
  const version = database.pragma('user_version', { simple: true }) as number;
  if (version > MIGRATIONS.length) {
    throw new NewerJournalError(
      `the journal has schema ${version}, this release knows ${MIGRATIONS.length}; use the release that wrote it or a newer one`,
    );
  }
  if (version === MIGRATIONS.length) return;
  database
    .transaction(() => {
      for (const migration of MIGRATIONS.slice(version)) database.exec(migration);
      database.pragma(`user_version = ${MIGRATIONS.length}`);
    })
    .immediate();
}

/** A journal that says of itself what cannot be: something in it is missing. */
export class DamagedJournalError extends Error {
  override readonly name = 'DamagedJournalError';
}

/** A journal that only a newer release can read. It is left untouched. */
export class NewerJournalError extends Error {
  override readonly name = 'NewerJournalError';
}
