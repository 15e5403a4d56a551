/** A connected process and what runs on it. Registrations and capacity live and die with the connection; executions may be resumed on another one. */
import type { Job } from './job.js';
import type { DueItem } from './turn.js';

/** Number of a connection; never used twice in the life of a broker. */
export type ConnectionId = number;

/** What an executor has said of one of its tasks. */
export interface Declaration {
  /** Raw JSON text of the attributes object. */
  readonly attributes: string;
  readonly sessions: 'host' | 'pinned';
  readonly idempotent: boolean;
  readonly idempotentOps: readonly string[];
}

/** A connection that asked for nothing: Tay v1. */
export const PLAIN_DECLARATION: Declaration = {
  attributes: '{}',
  sessions: 'pinned',
  idempotent: false,
  idempotentOps: [],
};

/** What the journal knows of an execution. */
export interface StoredExecution {
  readonly executionId: string;
  readonly reservationId: string;
  readonly runtimeId: string;
  readonly pid: number | null;
  /** Speaks `reelhost.1`: told about timeouts, can resume. */
  readonly extension: boolean;
  readonly idempotent: boolean;
  readonly startedAt: number;
}

/** One run of a job. It holds its executor's slot until the executor reports or is gone, whatever became of the job. */
export interface Execution extends StoredExecution {
  readonly job: Job;
  /** The connection it runs on; null while its executor is away. */
  connection: Peer | null;
  /** Whether its executor said so; not durable. */
  started: boolean;
  /** `running`; `stopping` (the executor was told to stop and the job waits for its report); `detached` (the job has moved on, only the slot is held). */
  phase: 'running' | 'stopping' | 'detached';
  /** Why it is stopping. */
  stopReason: 'timeout' | 'cancelled' | null;
  deadline: number;
  readonly timeoutItem: DueItem;
  awayDeadline: number;
  readonly awayItem: DueItem;
  /** Until when (monotonic ms) its executor may come back. */
  awayUntil: number;
  /** Requests that wait for the end of this execution. */
  waiters: Waiter[];
}

/** An execution that has not said anything: a new one, or one of the journal, whose executor has yet to come back. */
export function newExecution(job: Job, stored: StoredExecution, connection: Peer | null): Execution {
  const { executionId } = stored;
  // Field by field: V8 keeps what a spread makes as a dictionary.
  return {
    executionId,
    reservationId: stored.reservationId,
    runtimeId: stored.runtimeId,
    pid: stored.pid,
    extension: stored.extension,
    idempotent: stored.idempotent,
    startedAt: stored.startedAt,
    job,
    connection,
    started: false,
    phase: 'running',
    stopReason: null,
    deadline: -1,
    timeoutItem: { kind: 'executionTimeout', executionId },
    awayDeadline: -1,
    awayItem: { kind: 'executorAway', executionId },
    awayUntil: 0,
    waiters: [],
  };
}

/** Tay asks for two ids per execution; one of ours is made of the other. */
export function reservationOf(executionId: string): string {
  return `r.${executionId}`;
}

/** A request whose answer waits until an execution has ended or its time is over. */
export interface Waiter {
  readonly peer: Peer;
  readonly requestId: string;
  deadline: number;
  readonly item: DueItem;
}

/** A connection, from its first byte to its end. */
export interface Peer {
  readonly id: ConnectionId;
  readonly connectedAt: number;
  mode: 'new' | 'client' | 'embedded' | 'worker';
  runtimeId: string;
  /** What pins a session to this process, see {@link pinKey}; empty when it named no process. */
  pin: string;
  pid: number | null;
  software: string | null;
  extension: boolean;
  maxConcurrency: number;
  /** Executions that hold one of its slots. */
  readonly executions: Map<string, Execution>;
  readonly tasks: Map<string, Declaration>;
  /** Jobs whose end and progress it wants to hear. */
  readonly watches: Set<string>;
  watchesRegistry: boolean;
  /** Request ids that are not answered yet. */
  readonly outstanding: Set<string>;
  helloDeadline: number;
  readonly helloItem: DueItem;
  /** Since when (monotonic ms) a frame of it is unfinished, or -1; and the deadline that looks after it, or -1. */
  unfinishedSince: number;
  frameDeadline: number;
  readonly frameItem: DueItem;
  /** Characters sent to it since the driver last took its frames. */
  answered: number;
  /** Refused work for lack of capacity: no more before this monotonic ms. */
  refusingUntil: number;
  closed: boolean;
}

/** A connection that has said nothing yet. */
export function newPeer(id: ConnectionId, now: number): Peer {
  return {
    id,
    connectedAt: now,
    mode: 'new',
    runtimeId: '',
    pin: '',
    pid: null,
    software: null,
    extension: false,
    maxConcurrency: 0,
    executions: new Map(),
    tasks: new Map(),
    watches: new Set(),
    watchesRegistry: false,
    outstanding: new Set(),
    helloDeadline: -1,
    helloItem: { kind: 'helloTimeout', connection: id },
    unfinishedSince: -1,
    frameDeadline: -1,
    frameItem: { kind: 'frame', connection: id },
    answered: 0,
    refusingUntil: 0,
    closed: false,
  };
}

/** A runtime as sessions are pinned to it: the process, where one is known; runtime ids cannot have a NUL. */
export function pinKey(runtimeId: string, pid: number | null): string {
  return pid === null ? runtimeId : `${runtimeId}\0${pid}`;
}

/** How many more orders a peer may be given. */
export function freeSlots(peer: Peer): number {
  return peer.maxConcurrency - peer.executions.size;
}
