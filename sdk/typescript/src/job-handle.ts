/** One job as its producer sees it: its outcome, its progress, and how to cancel it. */
import type { ProgressReport } from '@reelhost/protocol';
import type { JobInfo, JobOutcome } from './client-views.js';
import { Deferred } from './deferred.js';
import { LatestValues } from './latest-values.js';

/** How a cancel went. */
export interface CancelReply {
  readonly job: JobInfo | undefined;
  /** Whether the executor had reported the end of the job when the reply was sent; undefined where the broker does not say. */
  readonly stopped: boolean | undefined;
}

/** One job. */
export interface JobHandle {
  readonly jobId: string;
  /** The job as it was when it was accepted; undefined for an attached one. */
  readonly job: JobInfo | undefined;
  /** Whether the id already belonged to a session's job of another definition; that job is the one handled. */
  readonly conflict: boolean;
  /** How the job ends. Rejects with `BrokerError` only when that can not be learnt: `not_found`, `client_closed`. */
  readonly outcome: Promise<JobOutcome>;
  /** The job's progress, the latest first; ends with the job. A slow reader skips. */
  progress(): AsyncIterable<ProgressReport>;
  /** Cancels the job; with `waitMs` (at most 20,000) the reply waits for the executor to end it. */
  cancel(options?: { readonly waitMs?: number | undefined }): Promise<CancelReply>;
}

/** A watched job: shared by all handles of one client for one id. */
export class WatchedJob {
  readonly outcome = new Deferred<JobOutcome>();
  readonly progress = new LatestValues<ProgressReport>();
  settled = false;
  /** Whether somebody already asks for the outcome, at a broker that pushes none. */
  polled = false;
  /** Enqueues of this id that are not answered: until then the broker need not know the job. */
  enqueuing = 0;

  constructor(readonly jobId: string) {}

  settle(outcome: JobOutcome): void {
    if (this.settled) return;
    this.settled = true;
    this.outcome.resolve(outcome);
    this.progress.end();
  }

  fail(error: unknown): void {
    if (this.settled) return;
    this.settled = true;
    this.outcome.reject(error);
    this.progress.end(error);
  }
}
