/** What clients and executors send, in the shape it has on the wire. `parseRequest` (request-reader.ts) makes these from envelopes. */
import type { RawJson } from './raw-json.js';

/** The name of the extension in `hello.extensions`. */
export const EXTENSION = 'reelhost.1';

/** How a peer introduces itself. */
export type ConnectionMode = 'client' | 'embedded' | 'worker';

interface Base<T extends string> {
  readonly type: T;
  readonly request_id: string;
}

/** What a reconnecting executor still runs, or owes a report for. */
export interface ResumeEntry {
  readonly execution_id: string;
  readonly reservation_id: string;
  readonly job_id: string;
  readonly state: 'running' | 'finished';
}

/** The first request. */
export interface Hello extends Base<'hello'> {
  readonly mode: ConnectionMode;
  readonly runtime_id: string;
  /** 0 for a client, 1..65,535 otherwise. */
  readonly max_concurrency: number;
  readonly extensions?: readonly string[];
  readonly pid?: number;
  readonly software?: string;
  readonly resume?: readonly ResumeEntry[];
}

/** What an executor says about one of its tasks. */
export interface TaskDeclaration {
  readonly attributes: RawJson;
  readonly sessions: 'host' | 'pinned';
  readonly idempotent: boolean;
  readonly idempotent_ops: readonly string[];
}

/** Adds task keys; `declarations` only with the extension. */
export interface RegisterTasks extends Base<'register_tasks'> {
  readonly tasks: readonly string[];
  readonly declarations?: Readonly<Record<string, TaskDeclaration>>;
}

/** The options of `enqueue` and `schedule`, defaults filled in. */
export interface EnqueueOptions {
  readonly id?: string;
  readonly submission_id?: string;
  /** From `delay` (seconds) or `delay_ms`. */
  readonly delay_ms?: number;
  /** UTC milliseconds; the past means now. */
  readonly run_at?: number;
  readonly retries: number;
  /** From `timeout` (seconds) or `timeout_ms`. */
  readonly timeout_ms: number;
  readonly queue: string;
}

/** Asks for a job. */
export interface Enqueue extends Base<'enqueue'> {
  readonly task: string;
  /** The text of a JSON object. */
  readonly args: RawJson;
  readonly options: EnqueueOptions;
  readonly session_id?: string;
  readonly watch?: boolean;
  readonly secrets?: Readonly<Record<string, string>>;
}

/** Declares a schedule. */
export interface Schedule extends Base<'schedule'> {
  readonly task: string;
  readonly args: RawJson;
  /** Exactly one of `cron` and `every_ms` is set. */
  readonly cron?: string;
  /** From `every: {seconds|minutes|hours|days}`. */
  readonly every_ms?: number;
  readonly timezone: string;
  /** Minutes east of UTC, from `timezone`. */
  readonly offset_minutes: number;
  readonly overlap: 'allow' | 'skip' | 'queue';
  readonly catch_up: 'latest' | 'all';
  readonly delay_ms?: number;
  readonly start_at?: number;
  readonly declaration_id?: string;
  readonly options: EnqueueOptions;
}

/** How far a running job is. */
export interface ProgressReport {
  readonly stage: string;
  /** 0..100; absent when unknown. */
  readonly percent?: number;
  readonly detail?: string;
}

interface ExecutionRef {
  readonly reservation_id: string;
  readonly execution_id: string;
}

/** Reports that a job is running. */
export type Started = Base<'started'> & ExecutionRef;
/** Reports a job's result. */
export type Succeeded = Base<'succeeded'> & ExecutionRef & { readonly result: RawJson };
/** Reports that a job failed. */
export type Failed = Base<'failed'> & ExecutionRef & { readonly error: FailureReport };

/** The `error` of `failed`. At least one of `type`, `message`, `traceback` is present. */
export interface FailureReport {
  readonly type?: string;
  readonly message?: string;
  readonly traceback?: string;
  /** Extension: default false. */
  readonly retryable?: boolean;
  /** Extension: an object, at most 16 KiB. */
  readonly details?: RawJson;
  /** Set by clients that stopped because of `cancel_execution`. */
  readonly cancelled?: boolean;
}

/** What `inspect` can show. */
export const INSPECTABLE = ['stats', 'jobs', 'job', 'sessions', 'session', 'runtimes', 'schedules'] as const;
/** A thing that `inspect` can show. */
export type Inspectable = (typeof INSPECTABLE)[number];

/** Asks for a page of the broker's state. */
export interface Inspect extends Base<'inspect'> {
  readonly what: Inspectable;
  readonly id?: string;
  readonly limit: number;
  readonly cursor?: string;
  readonly state?: string;
}

/** Everything a client or executor may send. */
export type Request =
  | Hello
  | RegisterTasks
  | (Base<'unregister_tasks'> & { readonly tasks: readonly string[] })
  | Base<'heartbeat'>
  | Base<'register_schedules'>
  | (Base<'pong'> & { readonly ping_id: string })
  | Enqueue
  | (Base<'status'> & { readonly job_id: string })
  | (Base<'result'> & { readonly job_id: string })
  | (Base<'cancel'> & { readonly job_id: string; readonly wait_ms: number })
  | Schedule
  | (Base<'cancel_schedule'> & { readonly schedule_id: string })
  | Started
  | Succeeded
  | Failed
  | (Base<'open_session'> & {
      readonly session_id: string;
      readonly task: string;
      readonly labels: Readonly<Record<string, string>>;
    })
  | (Base<'close_session'> & { readonly session_id: string; readonly grace_ms: number })
  | (Base<'watch'> & { readonly job_ids: readonly string[] })
  | (Base<'progress'> & ExecutionRef & { readonly progress: ProgressReport })
  | Base<'watch_registry'>
  | Inspect;

/** The type names of all requests. */
export type RequestType = Request['type'];

/** The shape of a session id. */
export const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
