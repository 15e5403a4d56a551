/** Between rows of the journal and the objects of the core. */
import { quote } from '@reelhost/protocol';
import {
  JOB_STATES,
  type Job,
  type JobError,
  newSchedule,
  newSession,
  reservationOf,
  type Schedule,
  type ScheduleDefinition,
  type Session,
  type SessionState,
  type StoredExecution,
} from '../core/index.js';

export interface JobRow {
  readonly seq: number;
  readonly id: string;
  readonly task: string;
  readonly queue: string;
  readonly state: number;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly timeout_ms: number;
  readonly delay_ms: number | null;
  readonly run_at: number | null;
  readonly created_at: number;
  readonly due_at: number | null;
  readonly interruptions: number;
  readonly session_id: string | null;
  readonly needs_secrets: number;
  readonly execution: string | null;
  readonly error: string | null;
  readonly args_bytes: number;
  readonly args: string | null;
  /** The outcome; all null while the job is unfinished. */
  readonly end_state: number | null;
  readonly completed_at: number | null;
  readonly end_error: string | null;
  readonly result_bytes: number | null;
  readonly result: string | null;
}

/** The columns of an unfinished job, in the order {@link unfinishedRow} takes their values. */
export const UNFINISHED_COLUMNS = `seq, id, task, queue, state, attempt, max_attempts, timeout_ms, delay_ms, run_at, created_at, due_at,
  interruptions, session_id, needs_secrets, execution, error, args_bytes, args`;

/** A start may read very many of these: an array of the driver made into an object here takes a third of the time of an object of the driver. */
export function unfinishedRow(values: readonly unknown[]): JobRow {
  return {
    seq: values[0] as JobRow['seq'],
    id: values[1] as JobRow['id'],
    task: values[2] as JobRow['task'],
    queue: values[3] as JobRow['queue'],
    state: values[4] as JobRow['state'],
    attempt: values[5] as JobRow['attempt'],
    max_attempts: values[6] as JobRow['max_attempts'],
    timeout_ms: values[7] as JobRow['timeout_ms'],
    delay_ms: values[8] as JobRow['delay_ms'],
    run_at: values[9] as JobRow['run_at'],
    created_at: values[10] as JobRow['created_at'],
    due_at: values[11] as JobRow['due_at'],
    interruptions: values[12] as JobRow['interruptions'],
    session_id: values[13] as JobRow['session_id'],
    needs_secrets: values[14] as JobRow['needs_secrets'],
    execution: values[15] as JobRow['execution'],
    error: values[16] as JobRow['error'],
    args_bytes: values[17] as JobRow['args_bytes'],
    args: values[18] as JobRow['args'],
    end_state: null,
    completed_at: null,
    end_error: null,
    result_bytes: null,
    result: null,
  };
}

/** Number of a state in a row. */
export const STATE_NUMBER: Readonly<Record<string, number>> = Object.fromEntries(
  JOB_STATES.map((state, number) => [state, number]),
);

export function jobOf(row: JobRow): Job {
  const error = row.end_state === null ? row.error : row.end_error;
  return {
    seq: row.seq,
    id: row.id,
    task: row.task,
    queue: row.queue,
    state: JOB_STATES[row.end_state ?? row.state] ?? 'discarded',
    attempt: row.attempt,
    maxAttempts: row.max_attempts,
    timeoutMs: row.timeout_ms,
    delayMs: row.delay_ms,
    runAt: row.run_at,
    createdAt: row.created_at,
    dueAt: row.end_state === null ? row.due_at : null,
    completedAt: row.completed_at,
    interruptions: row.interruptions,
    sessionId: row.session_id,
    secrets: row.needs_secrets === 1 && row.completed_at === null ? 'missing' : 'none',
    error: error === null ? null : (JSON.parse(error) as JobError),
    argsBytes: row.args_bytes,
    args: row.args,
    resident: false,
    resultBytes: row.result_bytes ?? 0,
    result: row.result,
    execution: null,
    stored: true,
    touched: false,
    order: 0,
    parked: null,
    secretsGrowth: 0,
    secretsHeld: 0,
    progress: null,
  };
}

/** `[executionId, runtimeId, pid, extension, idempotent, startedAt]`; the first releases of the journal wrote an object. */
type ExecutionText = readonly [string, string, number | null, boolean, boolean, number];

export function executionOf(row: JobRow): StoredExecution | null {
  if (row.execution === null || row.end_state !== null) return null;
  const stored = JSON.parse(row.execution) as ExecutionText | StoredExecution;
  if (!isExecutionText(stored)) return stored;
  const [executionId, runtimeId, pid, extension, idempotent, startedAt] = stored;
  return {
    executionId,
    reservationId: reservationOf(executionId),
    runtimeId,
    pid,
    extension,
    idempotent,
    startedAt,
  };
}

function isExecutionText(stored: ExecutionText | StoredExecution): stored is ExecutionText {
  return Array.isArray(stored);
}

/** The execution of a running job as the journal keeps it. */
export function executionText(job: Job): string | null {
  const { execution } = job;
  if (execution === null) return null;
  const { executionId, runtimeId, pid, extension, idempotent, startedAt } = execution;
  // By hand: this is written once per job. Ids of executions are the broker's own and need no escaping.
  return `["${executionId}",${quote(runtimeId)},${pid},${extension},${idempotent},${startedAt}]`;
}

export interface SessionRow {
  readonly id: string;
  readonly task: string;
  readonly labels: string;
  readonly state: string;
  readonly runtime_id: string | null;
  readonly runtime_pid: number | null;
  readonly lost_at: number | null;
  readonly opened_at: number;
  readonly closed_at: number | null;
  readonly stopped: number;
}

export function sessionOf(row: SessionRow): Session {
  const session = newSession(row.id, row.task, row.labels, row.opened_at);
  session.state = row.state as SessionState;
  session.runtimeId = row.runtime_id;
  session.runtimePid = row.runtime_pid;
  session.lostAt = row.lost_at;
  session.closedAt = row.closed_at;
  session.stopped = row.stopped === 1;
  session.stored = true;
  return session;
}

export interface ScheduleRow {
  readonly id: string;
  readonly definition: string;
  readonly next_at: number | null;
  readonly last_at: number | null;
  readonly cancelled_at: number | null;
  readonly last_job_id: string | null;
}

export function scheduleOf(row: ScheduleRow): Schedule {
  const schedule = newSchedule(row.id, JSON.parse(row.definition) as ScheduleDefinition);
  schedule.nextAt = row.next_at;
  schedule.lastAt = row.last_at;
  schedule.cancelledAt = row.cancelled_at;
  schedule.lastJobId = row.last_job_id;
  return schedule;
}
