/**
 * What goes into the core and what comes out of it.
 *
 * In: inputs with the time at which they are handled. Out: records (jobs, sessions, schedules that must be durable) and effects. The driver
 * commits the records of a turn in one transaction and only then carries out the effects, in order: nothing is visible before it is durable.
 */
import type { Request } from '@reelhost/protocol';
import type { Job, RawJson } from './job.js';
import type { ConnectionId } from './peer.js';
import type { Schedule } from './schedule.js';
import type { Session } from './session.js';

/** A request of one type as the protocol package reads it. */
export type RequestOf<T extends Request['type']> = Extract<Request, { readonly type: T }>;

/** What the driver has to do once the records of the turn are durable, in this order. */
export type Effect =
  /** One message. */
  | { readonly kind: 'send'; readonly to: ConnectionId; readonly text: string }
  /** `execute`: the arguments stand between head and tail; they may have to be read from the journal and secrets put in. */
  | {
      readonly kind: 'execute';
      readonly to: ConnectionId;
      readonly head: string;
      readonly job: Job;
      readonly tail: string;
    }
  | { readonly kind: 'closeConnection'; readonly to: ConnectionId }
  /** Ends a connection that left a frame unfinished for too long, unless it is the driver that does not read from it. */
  | { readonly kind: 'frameOverdue'; readonly to: ConnectionId }
  /** Makes the directory; `failed` is sent instead of `done` when that cannot be done. */
  | {
      readonly kind: 'makeSessionDirectory';
      readonly sessionId: string;
      readonly to: ConnectionId;
      readonly done: string;
      readonly requestId: string;
    }
  /** Removes it and reports `sessionDirectoryRemoved`. */
  | { readonly kind: 'removeSessionDirectory'; readonly sessionId: string }
  | { readonly kind: 'holdSecrets'; readonly jobId: string; readonly secrets: Readonly<Record<string, string>> }
  | { readonly kind: 'forgetSecrets'; readonly jobId: string }
  | {
      readonly kind: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly event: string;
      readonly fields: Readonly<Record<string, unknown>>;
    };

/** What must be durable before the effects of the turn are carried out. */
export interface Records {
  readonly jobs: Job[];
  readonly sessions: Session[];
  readonly schedules: Schedule[];
  /** Finished jobs of sessions of which only the id is kept from now on. */
  readonly tombstones: string[];
  /** Cancelled schedules of which nothing is kept from now on. */
  readonly forgottenSchedules: string[];
  /** Sessions that never came into being, because their directory could not be made. */
  readonly forgottenSessions: string[];
}

/** The records of a turn in which nothing has happened yet. */
export function noRecords(): Records {
  return { jobs: [], sessions: [], schedules: [], tombstones: [], forgottenSchedules: [], forgottenSessions: [] };
}

/** Whether nothing has to be written. */
export function isNothing(records: Records): boolean {
  return Object.values(records).every((list: readonly unknown[]) => list.length === 0);
}

/** What the journal says about itself. */
export interface JournalFacts {
  readonly durability: 'full' | 'normal';
  readonly bytes: number;
  readonly walBytes: number;
  /** Finished jobs by state. */
  readonly finished: Readonly<Record<string, number>>;
  /** The damaged journal that was set aside at this start, if any. */
  readonly setAside: string | null;
  /** What the last run had accepted and this start did not find any more, in words, or null. */
  readonly lost: string | null;
}

/** Finished work that is no longer in memory. Read-only; the driver answers from the journal. */
export interface Archive {
  findJob(id: string): Job | 'expired' | null;
  readArgs(job: Job): RawJson;
  readResult(job: Job): RawJson | null;
  findSession(id: string): Session | null;
  /** Jobs of the journal, newest first; a cursor is opaque. */
  listJobs(
    state: string | null,
    limit: number,
    cursor: string | null,
  ): { readonly jobs: Job[]; readonly nextCursor: string | null };
  listSessions(
    state: string | null,
    limit: number,
    cursor: string | null,
  ): { readonly sessions: Session[]; readonly nextCursor: string | null };
  facts(): JournalFacts;
  isProcessAlive(pid: number): boolean;
  sessionDirectory(sessionId: string): string;
  /** Value of the top-level string field `op` of an arguments object, or null. */
  readOp(args: RawJson): string | null;
  /** Whether two JSON texts mean the same value, number spelling included, key order not. */
  sameJson(a: RawJson, b: RawJson): boolean;
}

/** Randomness and hashes, which a core may not make itself. */
export interface Entropy {
  /** 32 lower-case hex digits, never all zero. */
  jobId(): string;
  /** Tay's id for a submission: first half of SHA-256, see the protocol. */
  submissionJobId(submissionId: string): string;
  occurrenceJobId(scheduleId: string, dueAt: number): string;
  /** 24 url-safe characters. */
  token(): string;
  /** Uniform integer in 0..max. */
  upTo(max: number): number;
}

/** The moment at which an input is handled. */
export interface Moment {
  /** UTC ms; may jump. For due times people name (`run_at`, cron) and for the record. */
  readonly wall: number;
  /** Monotonic ms; never jumps. For every duration. */
  readonly mono: number;
}

/** What a deadline is about. */
export type DueItem =
  | { readonly kind: 'jobDue'; readonly job: Job }
  | { readonly kind: 'executionTimeout'; readonly executionId: string }
  | { readonly kind: 'executorAway'; readonly executionId: string }
  | { readonly kind: 'helloTimeout'; readonly connection: ConnectionId }
  | { readonly kind: 'frame'; readonly connection: ConnectionId }
  | {
      readonly kind: 'cancelWait';
      readonly executionId: string;
      readonly requestId: string;
      readonly connection: ConnectionId;
    }
  | { readonly kind: 'sessionGrace'; readonly sessionId: string }
  | { readonly kind: 'sessionLoss'; readonly sessionId: string }
  | { readonly kind: 'secretsWindow'; readonly jobId: string }
  | { readonly kind: 'progress'; readonly jobId: string }
  | { readonly kind: 'registry' }
  | { readonly kind: 'dispatch' }
  | { readonly kind: 'schedule'; readonly scheduleId: string };
