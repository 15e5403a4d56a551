/**
 * The SQLite journal: the one place where a job survives. One transaction per turn of the event loop: what a turn recorded survives this process when
 * {@link Journal.commit} returns, and with durability `full` also a power cut once the log was flushed, see {@link Journal.log}.
 *
 * It never decides anything and never starts a transaction that begins by reading: every write transaction is IMMEDIATE, so the busy
 * handler works while another process reads or holds the file.
 */
import { statSync } from 'node:fs';
import SQLite, { type Database, type Statement } from 'better-sqlite3';
import type { Job, RawJson, Records, Schedule, Session, StoredState } from '../core/index.js';
import { Census } from './census.js';
import { Frontier } from './frontier.js';
import { JobWriter } from './job-writer.js';
import { LogSync } from './log-sync.js';
import { executionOf, type JobRow, jobOf, type ScheduleRow, type SessionRow, scheduleOf, sessionOf } from './rows.js';
import { DamagedJournalError, migrate, SELECT_JOBS, TOMBSTONE } from './schema.js';

export type Durability = 'full' | 'normal';

/** How long a write waits for another process that holds the file. */
const BUSY_TIMEOUT_MS = 10_000;
/** Pages of WAL after which SQLite moves them into the file; 4 KiB each. */
const CHECKPOINT_PAGES = 2000;
/** Arguments and results written after which somebody should look at the log. */
const GROWN_BYTES = 1_048_576;
/** What is left of the WAL file after a checkpoint. */
const WAL_LIMIT_BYTES = 16_777_216;

export class Journal {
  /** Called after a commit when so much was written since the last call that the log may have grown beyond its bound. */
  onGrown: () => void = () => undefined;
  #written = 0;
  readonly durability: Durability;
  readonly database: Database;
  readonly census: Census;
  readonly #begin: Statement;
  readonly #commit: Statement;
  readonly #rollback: Statement;
  readonly #readPayload: Statement;
  readonly #findJob: Statement;
  readonly #bury: Statement;
  readonly #dropPayloads: Statement;
  readonly #saveSession: Statement;
  readonly #findSession: Statement;
  readonly #sessionJobs: Statement;
  readonly #saveSchedule: Statement;
  readonly #dropSchedule: Statement;
  readonly #dropSession: Statement;
  readonly #buryOutcome: Statement;
  readonly #frontier: Frontier;
  readonly #jobs: JobWriter;
  #log: LogSync | null = null;

  /** Opens or makes a journal. @throws SqliteError when the file is damaged, NewerJournalError when a newer release wrote it. */
  constructor(path: string, durability: Durability) {
    this.durability = durability;
    const database = new SQLite(path, { timeout: BUSY_TIMEOUT_MS });
    this.database = database;
    this.census = new Census(database);
    database.pragma('auto_vacuum = INCREMENTAL');
    database.pragma('journal_mode = WAL');
    database.pragma(`synchronous = ${durability === 'full' ? 'FULL' : 'NORMAL'}`);
    database.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    database.pragma(`journal_size_limit = ${WAL_LIMIT_BYTES}`);
    migrate(database);
    this.#begin = database.prepare('BEGIN IMMEDIATE');
    this.#commit = database.prepare('COMMIT');
    this.#rollback = database.prepare('ROLLBACK');
    this.#readPayload = database.prepare('SELECT body FROM payloads WHERE key = ?').pluck();
    this.#findJob = database.prepare(`${SELECT_JOBS} WHERE jobs.id = ?`);
    this.#bury = database.prepare('UPDATE jobs SET args = NULL, args_bytes = 0 WHERE seq = ?');
    this.#buryOutcome = database.prepare(
      `UPDATE outcomes SET state = ${TOMBSTONE}, result = NULL, error = NULL, result_bytes = 0 WHERE seq = ?`,
    );
    this.#dropPayloads = database.prepare('DELETE FROM payloads WHERE key IN (?, ?)');
    this.#saveSession = database.prepare(
      `INSERT INTO sessions (id, task, labels, state, runtime_id, runtime_pid, opened_at, closed_at, lost_at, stopped) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET state = excluded.state, runtime_id = excluded.runtime_id, runtime_pid = excluded.runtime_pid,
       closed_at = excluded.closed_at, lost_at = excluded.lost_at, stopped = excluded.stopped`,
    );
    this.#findSession = database.prepare('SELECT * FROM sessions WHERE id = ?');
    this.#sessionJobs = database
      .prepare(
        `SELECT id FROM jobs JOIN outcomes USING (seq) WHERE session_id = ? AND outcomes.state < ${TOMBSTONE} ORDER BY completed_at, seq`,
      )
      .pluck();
    this.#saveSchedule = database.prepare(
      `INSERT OR REPLACE INTO schedules (id, definition, next_at, last_at, cancelled_at, last_job_id) VALUES (?, ?, ?, ?, ?, ?)`,
    );
    this.#dropSchedule = database.prepare('DELETE FROM schedules WHERE id = ?');
    this.#dropSession = database.prepare('DELETE FROM sessions WHERE id = ?');
    this.#frontier = new Frontier(database);
    this.#jobs = new JobWriter(database, this.#frontier);
  }

  /** Makes the records of one turn durable, all or none. @throws SqliteError; then nothing was written and the call may be repeated. */
  commit(records: Records): void {
    const buried: number[] = [];
    this.#begin.run();
    try {
      // First: what was forgotten may have been made anew in the same turn.
      for (const id of records.forgottenSchedules) this.#dropSchedule.run(id);
      for (const id of records.forgottenSessions) this.#dropSession.run(id);
      for (const job of records.jobs) this.#jobs.write(job);
      this.#jobs.finish();
      for (const session of records.sessions) this.#writeSession(session);
      for (const schedule of records.schedules) this.#writeSchedule(schedule);
      for (const id of records.tombstones) this.#writeTombstone(id, buried);
      this.#frontier.advance();
      this.#commit.run();
    } catch (error) {
      this.#jobs.drop();
      if (this.database.inTransaction) this.#rollback.run();
      throw error;
    }
    this.#frontier.committed();
    this.census.written(records.jobs);
    for (const job of records.jobs) this.#written += job.argsBytes + job.resultBytes;
    if (this.#written > GROWN_BYTES) {
      this.#written = 0;
      this.onGrown();
    }
    this.census.buried(buried);
  }

  #writeSession(session: Session): void {
    const { id, task, labels, state, runtimeId, runtimePid, openedAt, closedAt, lostAt, stopped } = session;
    const ended = stopped ? 1 : 0;
    this.#saveSession.run(id, task, labels, state, runtimeId, runtimePid, openedAt, closedAt, lostAt, ended);
  }

  #writeSchedule(schedule: Schedule): void {
    const { id, definition, nextAt, lastAt, cancelledAt, lastJobId } = schedule;
    this.#saveSchedule.run(id, JSON.stringify(definition), nextAt, lastAt, cancelledAt, lastJobId);
  }

  #writeTombstone(id: string, buried: number[]): void {
    const row = this.#findJob.get(id) as JobRow | undefined;
    if (row === undefined || row.end_state === null || row.end_state === TOMBSTONE) return;
    this.#bury.run(row.seq);
    this.#buryOutcome.run(row.seq);
    this.#dropPayloads.run(row.seq * 2, row.seq * 2 + 1);
    buried.push(row.end_state);
  }

  /** A job that is not in memory, `expired` when only its id is kept, or null. */
  findJob(id: string): Job | 'expired' | null {
    const row = this.#findJob.get(id) as JobRow | undefined;
    if (row === undefined) return null;
    return row.end_state === TOMBSTONE ? 'expired' : jobOf(row);
  }

  /**
   * The arguments of a job that are not in memory; JSON null when the job is finished and retention has dropped them.
   * @throws DamagedJournalError when the job is not finished: what nobody knows the arguments of must never run
   */
  readArgs(job: Job): RawJson {
    const text = this.#readPayload.get(job.seq * 2) as string | undefined;
    if (text !== undefined) return text;
    if (job.completedAt === null) throw new DamagedJournalError(`the arguments of job ${job.id} are missing`);
    return 'null';
  }

  /** The result of a finished job that is not in memory. @throws DamagedJournalError when there was one and the job is still kept */
  readResult(job: Job): RawJson | null {
    const text = this.#readPayload.get(job.seq * 2 + 1) as string | undefined;
    if (text !== undefined) return text;
    const kept = this.#findJob.get(job.id) as JobRow | undefined;
    if (job.resultBytes > 0 && kept !== undefined && kept.end_state !== TOMBSTONE && kept.result === null) {
      throw new DamagedJournalError(`the result of job ${job.id} is missing`);
    }
    return kept?.result ?? null;
  }

  findSession(id: string): Session | null {
    const row = this.#findSession.get(id) as SessionRow | undefined;
    return row === undefined ? null : sessionOf(row);
  }

  /** Everything unfinished. @throws DamagedJournalError when arguments are missing: what nobody knows the arguments of must never run */
  load(): StoredState {
    const jobs = this.#frontier.unfinished().map((row) => ({ job: jobOf(row), execution: executionOf(row) }));
    for (const { job } of jobs) if (job.args === null) this.readArgs(job);
    const sessionRows = this.database
      .prepare(`SELECT * FROM sessions WHERE closed_at IS NULL ORDER BY opened_at`)
      .all() as SessionRow[];
    const sessions = sessionRows.map((row) => {
      const session = sessionOf(row);
      session.kept.push(...(this.#sessionJobs.all(session.id) as string[]));
      return session;
    });
    const scheduleRows = this.database.prepare('SELECT * FROM schedules ORDER BY id').all() as ScheduleRow[];
    return { jobs, sessions, schedules: scheduleRows.map(scheduleOf) };
  }

  /** Finds a file that was cut. @throws SyntaxError */
  checkSize(path: string): void {
    const [checkpoint] = this.database.pragma('wal_checkpoint(PASSIVE)') as { log: number; checkpointed: number }[];
    if (checkpoint === undefined || checkpoint.log !== checkpoint.checkpointed) return;
    const pages = this.database.pragma('page_count', { simple: true }) as number;
    const pageSize = this.database.pragma('page_size', { simple: true }) as number;
    if (statSync(path).size < pages * pageSize) throw new SyntaxError('the journal is shorter than it says');
  }

  /** The number the next job gets: above all others, also when retention has removed the newest jobs. */
  nextSeq(): number {
    const newest = (this.database.prepare('SELECT max(seq) FROM jobs').pluck().get() as number | null) ?? 0;
    return Math.max(newest + 1, this.#frontier.first);
  }

  /** Reads a value of the meta table, writing `make()` first when there is none. */
  meta(key: string, make: () => string): string {
    const found = this.database.prepare('SELECT value FROM meta WHERE key = ?').pluck().get(key) as string | undefined;
    if (found !== undefined) return found;
    const value = make();
    this.setMeta(key, value);
    return value;
  }

  setMeta(key: string, value: string): void {
    this.database.prepare('INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)').run(key, value);
  }

  /**
   * From now on commits do not wait for the disk: who speaks of them flushes the log first. Null with durability `normal`, which never waits. Everything
   * written before this call is on the disk already.
   */
  log(): LogSync | null {
    if (this.durability === 'normal' || this.#log !== null) return this.#log;
    this.#log = new LogSync(this.database.name);
    this.database.pragma('synchronous = NORMAL');
    return this.#log;
  }

  close(): void {
    this.#log?.close();
    this.database.close();
  }
}
