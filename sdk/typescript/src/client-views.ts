/** What a client gets to see, in the SDK's own names, and how it is read from the wire. */
import type {
  Envelope,
  JobError,
  JobState,
  JobView,
  JsonObject,
  JsonValue,
  RuntimeView,
  ScheduleView,
  SessionState,
  SessionView,
} from '@reelhost/protocol';
import { BrokerError } from './errors.js';

/** A job. Times are UTC milliseconds. */
export interface JobInfo {
  readonly id: string;
  readonly task: string;
  readonly state: JobState;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly queue: string;
  readonly scheduledAt: number | null;
  readonly completedAt: number | null;
  readonly sessionId?: string;
  readonly errors: readonly JsonObject[];
}

/** A session and its directory. Times are UTC milliseconds. */
export interface SessionInfo {
  readonly sessionId: string;
  readonly task: string;
  readonly dir: string;
  readonly state: SessionState;
  readonly labels: Readonly<Record<string, string>>;
  readonly openedAt: number;
  readonly closedAt: number | null;
  readonly runningJobId: string | null;
  readonly runtimeId: string | null;
}

/** An executor that is connected to the broker. */
export interface RuntimeInfo {
  readonly runtimeId: string;
  readonly mode: string;
  readonly software: string | null;
  readonly pid: number | null;
  readonly maxConcurrency: number;
  readonly inFlight: number;
  readonly extension: boolean;
  readonly tasks: Readonly<Record<string, { readonly attributes: JsonObject; readonly sessions: 'host' | 'pinned' }>>;
}

/** A schedule. Times are UTC milliseconds. */
export interface ScheduleInfo {
  readonly id: string;
  readonly task: string;
  readonly kind: 'cron' | 'every';
  readonly timezone: string;
  readonly overlap: string;
  readonly catchUp: string;
  readonly nextAt: number | null;
  readonly lastAt: number | null;
  readonly cancelledAt: number | null;
}

/** How a job ended. */
export type JobOutcome =
  | {
      readonly state: 'completed';
      /** The result as JavaScript sees it. */
      readonly result: JsonValue;
      /** The result exactly as the executor sent it. */
      readonly resultJson: string;
    }
  | { readonly state: 'discarded' | 'cancelled'; readonly error: OutcomeError };

/** Why a job did not complete. `type` is the code the task or the broker gave. */
export interface OutcomeError {
  readonly type: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly details?: JsonValue;
}

/** A completed outcome whose result is only parsed when somebody looks at it. */
export function completed(resultJson: string): JobOutcome {
  return {
    state: 'completed',
    resultJson,
    get result(): JsonValue {
      return JSON.parse(resultJson) as JsonValue;
    },
  };
}

/** A kept error of a job. */
export function outcomeError(error: JobError): OutcomeError {
  const { type, message, retryable, details } = error;
  return { type, message, retryable, ...(details === undefined ? {} : { details: details.value() }) };
}

function violation(what: string): BrokerError {
  return new BrokerError('protocol_violation', `the broker's reply has no ${what}`);
}

/** An object field of a reply. @throws BrokerError */
export function objectField(envelope: Envelope, name: string): JsonObject {
  const value = envelope.value(name);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw violation(name);
  return value;
}

/** The `job` of a reply. */
export function readJob(envelope: Envelope): JobInfo {
  const job = objectField(envelope, 'job') as unknown as JobView;
  return {
    id: job.id,
    task: job.task,
    state: job.state,
    attempt: job.attempt,
    maxAttempts: job.max_attempts,
    queue: job.queue,
    scheduledAt: job.scheduled_at,
    completedAt: job.completed_at,
    errors: (Array.isArray(job.errors) ? job.errors : []) as unknown as JsonObject[],
    ...(typeof job.session_id === 'string' ? { sessionId: job.session_id } : {}),
  };
}

/** The `session` of a reply. */
export function readSession(envelope: Envelope): SessionInfo {
  const session = objectField(envelope, 'session') as unknown as SessionView;
  return {
    sessionId: session.session_id,
    task: session.task,
    dir: session.dir,
    state: session.state,
    labels: session.labels,
    openedAt: session.opened_at,
    closedAt: session.closed_at,
    runningJobId: session.running_job_id,
    runtimeId: session.runtime_id,
  };
}

/** The `schedule` of a reply. */
export function readScheduleInfo(envelope: Envelope): ScheduleInfo {
  const schedule = objectField(envelope, 'schedule') as unknown as ScheduleView;
  return {
    id: schedule.id,
    task: schedule.task,
    kind: schedule.kind,
    timezone: schedule.timezone,
    overlap: schedule.overlap,
    catchUp: schedule.catch_up,
    nextAt: schedule.next_at,
    lastAt: schedule.last_at,
    cancelledAt: schedule.cancelled_at,
  };
}

/** The `runtimes` of a reply or push. */
export function readRuntimes(envelope: Envelope): RuntimeInfo[] {
  const runtimes = envelope.value('runtimes');
  if (!Array.isArray(runtimes)) throw violation('runtimes');
  return (runtimes as unknown as RuntimeView[]).map((runtime) => ({
    runtimeId: runtime.runtime_id,
    mode: runtime.mode,
    software: runtime.software ?? null,
    pid: runtime.pid ?? null,
    maxConcurrency: runtime.max_concurrency,
    inFlight: runtime.in_flight,
    extension: runtime.extension,
    tasks: runtime.tasks as unknown as RuntimeInfo['tasks'],
  }));
}
