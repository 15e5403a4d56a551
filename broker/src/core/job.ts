/**
 * The durable unit: a job, its states and the error it may end with. Tay's local executor protocol v1, section 3.2 and 3.4.
 * A job object is mutable and owned by the core; the journal reads it when the turn is committed and never changes it.
 */
import type { Execution } from './peer.js';
import type { DueItem } from './turn.js';

/** A JSON text exactly as a peer wrote it. Never parsed, never re-encoded. */
export type RawJson = string;

/** Never reordered: the journal stores a state's index, and 7 for a job of which only the id is left. */
export const JOB_STATES = [
  'scheduled',
  'available',
  'executing',
  'retryable',
  'completed',
  'discarded',
  'cancelled',
] as const;
/** Where a job is in its life; the moves between them are {@link JOB_TRANSITIONS}. */
export type JobState = (typeof JOB_STATES)[number];

/** From which state a job may go to which: the whole machine. `executing → available` is a refusal that cost no attempt. */
export const JOB_TRANSITIONS: Readonly<Record<JobState, readonly JobState[]>> = {
  scheduled: ['available', 'cancelled', 'discarded'],
  available: ['executing', 'cancelled', 'discarded'],
  executing: ['completed', 'retryable', 'discarded', 'cancelled', 'available'],
  retryable: ['available', 'cancelled', 'discarded'],
  completed: [],
  discarded: [],
  cancelled: [],
};

/** Tay's numeric error codes as `job.errors[].code` shows them. */
export const TAY_ERROR_CODE = { taskFailed: 1, timeout: 5, interrupted: 7 } as const;

/** Why a job failed, as its executor or the broker said it. `details` is raw JSON text. */
export interface JobError {
  readonly type: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly traceback?: string;
  readonly details?: string;
  readonly code: number;
}

/** What a submitter asked for; equal definitions under one id are one job. */
export interface JobDefinition {
  readonly task: string;
  readonly queue: string;
  readonly maxAttempts: number;
  readonly timeoutMs: number;
  /** Requested delay in ms; compared as requested, not as the moment it led to. Null when none was asked for. */
  readonly delayMs: number | null;
  /** Requested UTC ms, or null. */
  readonly runAt: number | null;
  readonly sessionId: string | null;
}

/** A job, unfinished or looked up. */
export interface Job extends JobDefinition {
  /** The journal's key: rises with every job. */
  readonly seq: number;
  /** 32 lower-case hex digits. */
  readonly id: string;
  readonly createdAt: number;
  /** Null when the arguments are only in the journal. */
  args: RawJson | null;
  readonly argsBytes: number;
  /** Whether the arguments may stay in memory once the journal has them. */
  readonly resident: boolean;
  state: JobState;
  /** Number of the current or last attempt, 0 before the first. */
  attempt: number;
  interruptions: number;
  /** UTC ms at which a scheduled or retryable job becomes available, else null. */
  dueAt: number | null;
  completedAt: number | null;
  error: JobError | null;
  /** Raw JSON of a completed job's result; null when there is none or it is only in the journal. */
  result: RawJson | null;
  resultBytes: number;
  /** The execution that is running it, durable before `execute` leaves. */
  execution: Execution | null;
  /** Null: needs none. `held`: in memory. `missing`: lost by a restart, awaited. */
  secrets: 'none' | 'held' | 'missing';
  /** Whether the journal holds this job already (decides insert or update). */
  stored: boolean;
  /** Whether it is in this turn's record list already. */
  touched: boolean;
  /** Order in which it became available: oldest first across tasks. */
  order: number;
  /** What wakes it up while it waits for a moment, and the deadline bucket that is in. */
  parked: { readonly item: DueItem; readonly bucket: number } | null;
  /** By how many UTF-16 units its arguments grow when its secrets are put in; not durable, as the secrets are not. */
  secretsGrowth: number;
  /** UTF-16 units of its secrets. */
  secretsHeld: number;
  /** Its latest progress, once somebody watches. Never durable. */
  progress: { readonly item: DueItem; sentAt: number; waiting: RawJson | null } | null;
}

/** Whether the job has ended. */
export function isFinal(state: JobState): boolean {
  return state === 'completed' || state === 'discarded' || state === 'cancelled';
}

/** Moves a job. @throws Error on a move the table does not have: a bug of the core, never of a peer. */
export function moveJob(job: Job, to: JobState): void {
  if (!JOB_TRANSITIONS[job.state].includes(to))
    throw new Error(`job ${job.id}: ${job.state} → ${to} is not a transition`);
  job.state = to;
}

/** Whether two definitions ask for the same thing, arguments apart. */
export function sameDefinition(a: JobDefinition, b: JobDefinition): boolean {
  return (
    a.task === b.task &&
    a.queue === b.queue &&
    a.maxAttempts === b.maxAttempts &&
    a.timeoutMs === b.timeoutMs &&
    a.delayMs === b.delayMs &&
    a.runAt === b.runAt &&
    a.sessionId === b.sessionId
  );
}
