/**
 * What the broker sends: replies, errors and pushes, in the shape they have on the wire.
 *
 * Everything a broker sends goes through `encodeMessage` (message-writer.ts), so these types are the strict side. Reading them
 * (`parseBrokerMessage`) is tolerant: fields we do not know are ignored.
 */
import type { RawJson } from './raw-json.js';
import type { ConnectionMode, ProgressReport } from './request-messages.js';

/** The states a job can be in. */
export type JobState = 'scheduled' | 'available' | 'executing' | 'retryable' | 'completed' | 'discarded' | 'cancelled';

/** A job as `enqueued`, `status` and `cancelled` show it. Times are UTC milliseconds. */
export interface JobView {
  readonly id: string;
  readonly task: string;
  /** Left out on `reelhost.1` connections, except in `status`; null on others that might not be able to read it. */
  readonly args?: RawJson;
  readonly state: JobState;
  readonly attempt: number;
  readonly max_attempts: number;
  readonly queue: string;
  readonly scheduled_at: number | null;
  readonly completed_at: number | null;
  /** At most the latest: Tay's numeric code, and the kept error of the executor. */
  readonly errors: readonly JobErrorView[];
  readonly session_id?: string;
  /** Tay's newer clients show it; every job here is kept. */
  readonly durability?: 'persistent';
}

/** An entry of `job.errors`. Codes: 1 task failed, 5 timeout, 7 interrupted. */
export interface JobErrorView {
  readonly code: number;
  readonly version: 1;
  readonly type?: string;
  readonly message?: string;
  readonly traceback?: string;
}

/** Why a job did not succeed. */
export interface JobError {
  readonly type: string;
  readonly message: string;
  readonly retryable: boolean;
  /** Further facts from the executor, as it sent them. */
  readonly details?: RawJson;
  readonly traceback?: string;
}

/** A schedule as `scheduled` and `schedule_cancelled` show it. Times are UTC milliseconds. */
export interface ScheduleView {
  readonly id: string;
  readonly task: string;
  readonly kind: 'cron' | 'every';
  readonly timezone: string;
  readonly overlap: 'allow' | 'skip' | 'queue';
  readonly catch_up: 'latest' | 'all';
  readonly next_at: number | null;
  readonly last_at: number | null;
  readonly cancelled_at: number | null;
}

/** The states of a session. */
export type SessionState = 'open' | 'closing' | 'closed' | 'lost';

/** A session and its directory. Times are UTC milliseconds. */
export interface SessionView {
  readonly session_id: string;
  readonly task: string;
  /** Absolute path, mode 0700; gone once the session is closed. */
  readonly dir: string;
  readonly state: SessionState;
  readonly labels: Readonly<Record<string, string>>;
  readonly opened_at: number;
  readonly closed_at: number | null;
  readonly running_job_id: string | null;
  readonly runtime_id: string | null;
}

/** An executor as registry watchers see it. */
export interface RuntimeView {
  readonly runtime_id: string;
  readonly mode: Exclude<ConnectionMode, 'client'>;
  readonly software: string | null;
  readonly pid: number | null;
  readonly max_concurrency: number;
  readonly in_flight: number;
  /** Whether it speaks `reelhost.1`. */
  readonly extension: boolean;
  readonly tasks: Readonly<Record<string, RuntimeTaskView>>;
}

/** What an executor declared for one task. */
export interface RuntimeTaskView {
  readonly attributes: RawJson;
  readonly sessions: 'host' | 'pinned';
}

interface Base<T extends string> {
  readonly type: T;
  readonly request_id: string;
}

/** The reply to `hello`; everything after `max_concurrency` only on a `reelhost.1` connection. */
export interface HelloOk extends Base<'hello_ok'> {
  readonly mode: ConnectionMode;
  readonly max_concurrency: number;
  readonly extensions?: readonly string[];
  readonly broker?: { readonly version: string; readonly generation: number; readonly instance: string };
  readonly limits?: {
    readonly max_frame_bytes: number;
    readonly max_result_bytes: number;
    readonly max_error_bytes: number;
    readonly max_args_bytes: number;
    readonly max_outstanding_requests: number;
    readonly max_tasks_per_message: number;
  };
  readonly resume?: readonly { readonly execution_id: string; readonly wanted: boolean }[];
}

/** An error; without `request_id` it is the last message of the connection. */
export interface ErrorMessage {
  readonly type: 'error';
  readonly request_id?: string;
  readonly error: WireError;
}

/** The `error` object of an error message. */
export interface WireError {
  readonly code: string;
  readonly message?: string;
  readonly reason?: string;
  /** For `task_failed` and `job_cancelled`: the kept error of the job. */
  readonly error?: JobError;
}

/** The order to run a job. */
export interface Execute extends Base<'execute'> {
  readonly reservation_id: string;
  readonly execution_id: string;
  readonly job_id: string;
  readonly task: string;
  readonly args: RawJson;
  readonly timeout_ms: number;
  readonly attempt?: number;
  readonly queue?: string;
  readonly session_id?: string;
}

/** The request to stop a job; `reason` only on a `reelhost.1` connection. */
export interface CancelExecution extends Base<'cancel_execution'> {
  readonly reservation_id: string;
  readonly execution_id: string;
  readonly reason?: 'cancel' | 'timeout' | 'session_closed';
}

/** The outcome of a watched job. */
export type JobSettled = Base<'job_settled'> & {
  readonly job_id: string;
} & (
    | { readonly state: 'completed'; readonly result: RawJson }
    | { readonly state: 'discarded' | 'cancelled'; readonly error: JobError }
  );

/** Everything a broker may send. */
export type BrokerMessage =
  | HelloOk
  | ErrorMessage
  | (Base<'tasks_registered'> & { readonly tasks: readonly string[] })
  | (Base<'tasks_unregistered'> & { readonly tasks: readonly string[] })
  | Base<'heartbeat_ok'>
  | Base<'accepted'>
  | (Base<'ping'> & { readonly ping_id: string })
  | (Base<'enqueued'> & { readonly job_id: string; readonly job: JobView; readonly conflict?: boolean })
  | (Base<'status'> & { readonly status: JobState; readonly job: JobView })
  | (Base<'result'> & { readonly result: RawJson })
  | (Base<'cancelled'> & { readonly status: JobState; readonly job: JobView; readonly stopped?: boolean })
  | (Base<'scheduled'> & { readonly schedule_id: string; readonly schedule: ScheduleView })
  | (Base<'schedule_cancelled'> & { readonly schedule_id: string; readonly schedule: ScheduleView })
  | Execute
  | CancelExecution
  | (Base<'session_opened'> & { readonly session: SessionView })
  | (Base<'session_closed'> & { readonly session: SessionView; readonly stopped: boolean })
  | (Base<'watching'> & { readonly job_ids: readonly string[]; readonly unknown: readonly string[] })
  | JobSettled
  | (Base<'job_progress'> & { readonly job_id: string; readonly progress: ProgressReport })
  | (Base<'registry'> & { readonly runtimes: readonly RuntimeView[] })
  | (Base<'registry_changed'> & { readonly runtimes: readonly RuntimeView[] })
  | (Base<'inspected'> & { readonly what: string; readonly data: RawJson; readonly next_cursor: string | null });
