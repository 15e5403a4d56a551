/** A session: a directory of this host that a sequence of jobs shares. docs/local-protocol.md, Sessions. */
import type { Job } from './job.js';
import type { Execution, Waiter } from './peer.js';
import type { DueItem } from './turn.js';

/** Only `open` takes jobs; only `closed` has no directory any more. */
export type SessionState = 'open' | 'closing' | 'closed' | 'lost';

/** A session that is not closed, or was closed just now. */
export interface Session {
  readonly id: string;
  readonly task: string;
  /** Raw JSON text of a flat object of strings. */
  readonly labels: string;
  readonly openedAt: number;
  state: SessionState;
  closedAt: number | null;
  /** The runtime that serves a pinned session since its first job, and its process where it named one. */
  runtimeId: string | null;
  runtimePid: number | null;
  /** UTC ms at which its runtime was given up; null while it is not lost. */
  lostAt: number | null;
  /** The job that has not finished, or whose execution has not. */
  running: Job | null;
  runningExecution: Execution | null;
  /** Requests that wait for its end. */
  closers: Waiter[];
  graceDeadline: number;
  readonly graceItem: DueItem;
  /** Whether its directory is being removed. */
  removing: boolean;
  /** The next look at an absent runtime of a pinned session: the deadline's bucket; until when (monotonic ms) it may come back. */
  lossDeadline: number;
  readonly lossItem: DueItem;
  awayUntil: number;
  /** Ids of its finished jobs whose results are kept, oldest first. */
  readonly kept: string[];
  /** Whether the executor had ended when the session was closed. */
  stopped: boolean;
  stored: boolean;
  touched: boolean;
}

/** The `session` object of the protocol as JSON text. */
export function sessionText(session: Session, dir: string): string {
  return `{"session_id":${JSON.stringify(session.id)},"task":${JSON.stringify(session.task)},"dir":${JSON.stringify(dir)},"state":"${session.state}","labels":${session.labels},"opened_at":${session.openedAt},"closed_at":${session.closedAt},"running_job_id":${session.running === null ? 'null' : `"${session.running.id}"`},"runtime_id":${session.runtimeId === null ? 'null' : JSON.stringify(session.runtimeId)}}`;
}
