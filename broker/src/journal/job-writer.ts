/**
 * How jobs get into the journal: a row when one is made, a row when it ends, and changes in between. It writes within the transaction of its caller, who says
 * when what was written must be readable ({@link JobWriter.finish}).
 */
import type { Database, Statement } from 'better-sqlite3';
import type { Job } from '../core/index.js';
import type { Frontier } from './frontier.js';
import { RowBatch } from './row-batch.js';
import { executionText, STATE_NUMBER } from './rows.js';
import { INLINE_BYTES } from './schema.js';

export class JobWriter {
  readonly #frontier: Frontier;
  readonly #ordinary: RowBatch;
  readonly #outcomes: RowBatch;
  readonly #insert: Statement;
  readonly #update: Statement;
  readonly #insertPayload: Statement;

  constructor(database: Database, frontier: Frontier) {
    this.#frontier = frontier;
    this.#ordinary = new RowBatch(
      database,
      `INSERT INTO jobs (seq, id, task, queue, state, attempt, max_attempts, timeout_ms, created_at, interruptions, needs_secrets, execution,
       args_bytes, args) VALUES`,
      '(?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?, ?)',
    );
    this.#outcomes = new RowBatch(
      database,
      'INSERT OR REPLACE INTO outcomes (seq, state, completed_at, result_bytes, error, result) VALUES',
      '(?, ?, ?, ?, ?, ?)',
    );
    this.#insert = database.prepare(
      `INSERT INTO jobs (seq, id, task, queue, state, attempt, max_attempts, timeout_ms, delay_ms, run_at, created_at, due_at,
       interruptions, session_id, needs_secrets, execution, error, args_bytes, args) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#update = database.prepare(
      'UPDATE jobs SET state = ?, attempt = ?, due_at = ?, interruptions = ?, execution = ?, error = ? WHERE seq = ?',
    );
    this.#insertPayload = database.prepare('INSERT OR REPLACE INTO payloads (key, body) VALUES (?, ?)');
  }

  /** Writes a job as it is now, once per transaction. @throws SqliteError */
  write(job: Job): void {
    if (!job.stored) this.#writeNew(job);
    else if (job.state !== 'completed') this.#writeChange(job);
    if (job.completedAt === null) return;
    const { seq, completedAt, resultBytes } = job;
    const result = this.#inline(seq * 2 + 1, job.result);
    this.#outcomes.add([seq, STATE_NUMBER[job.state] as number, completedAt, resultBytes, errorOf(job), result]);
    this.#frontier.settled(seq);
  }

  /** Everything written so far can be read. @throws SqliteError */
  finish(): void {
    this.#ordinary.finish();
    this.#outcomes.finish();
  }

  /** The transaction has failed. */
  drop(): void {
    this.#ordinary.drop();
    this.#outcomes.drop();
  }

  /** Most jobs start at once and ask for nothing special: such a one needs half of the columns. */
  #writeNew(job: Job): void {
    const { seq, id, task, queue, attempt, maxAttempts, timeoutMs, createdAt, argsBytes } = job;
    const state = STATE_NUMBER[job.state] as number;
    const args = this.#inline(seq * 2, job.args);
    const execution = executionText(job);
    this.#frontier.added(seq);
    if (isOrdinary(job)) {
      this.#ordinary.add([
        seq,
        id,
        task,
        queue,
        state,
        attempt,
        maxAttempts,
        timeoutMs,
        createdAt,
        execution,
        argsBytes,
        args,
      ]);
      return;
    }
    this.#insert.run(
      ...[seq, id, task, queue, state, attempt, maxAttempts, timeoutMs, job.delayMs, job.runAt, createdAt, job.dueAt],
      ...[job.interruptions, job.sessionId, job.secrets === 'none' ? 0 : 1, execution, errorOf(job), argsBytes, args],
    );
  }

  /** Not for a job that ended well: its row says what its outcome does not. */
  #writeChange(job: Job): void {
    const { seq, attempt, dueAt, interruptions } = job;
    const state = STATE_NUMBER[job.state];
    this.#update.run(state, attempt, dueAt, interruptions, executionText(job), errorOf(job), seq);
  }

  /** A short text for the row itself, or null after putting a long one beside it. */
  #inline(key: number, text: string | null): string | null {
    if (text === null || text.length <= INLINE_BYTES) return text;
    this.#insertPayload.run(key, text);
    return null;
  }
}

function errorOf(job: Job): string | null {
  return job.error === null ? null : JSON.stringify(job.error);
}

/** Whether everything but the ordinary columns of a new job is empty. */
function isOrdinary(job: Job): boolean {
  return (
    job.delayMs === null &&
    job.runAt === null &&
    job.dueAt === null &&
    job.sessionId === null &&
    job.secrets === 'none' &&
    job.error === null &&
    job.interruptions === 0
  );
}
