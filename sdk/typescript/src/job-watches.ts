/**
 * The jobs whose outcome somebody waits for, whatever happens to the connection: watches are renewed after every cut, and at a broker that
 * pushes no outcomes they are asked for.
 */
import { type Envelope, MAX_WATCHED_JOBS, type Push } from '@reelhost/protocol';
import type { ClientConnection } from './client-connection.js';
import { completed, outcomeError } from './client-views.js';
import { BrokerError } from './errors.js';
import type { EventListener } from './executor.js';
import { WatchedJob } from './job-handle.js';
import { pollOutcome } from './outcome-poll.js';

/** The watched jobs of one client. */
export class JobWatches {
  readonly #jobs = new Map<string, WatchedJob>();
  readonly #connection: ClientConnection;
  readonly #event: EventListener;

  constructor(connection: ClientConnection, event: EventListener) {
    this.#connection = connection;
    this.#event = event;
  }

  /** Whether a job is watched. */
  has(jobId: string): boolean {
    return this.#jobs.has(jobId);
  }

  /** The watched job of an id, made when there is none. */
  watched(jobId: string): WatchedJob {
    const known = this.#jobs.get(jobId);
    if (known !== undefined) return known;
    const job = new WatchedJob(jobId);
    this.#jobs.set(jobId, job);
    return job;
  }

  /** Ends a watch whose job came to nothing. */
  fail(jobId: string, error: unknown): void {
    const job = this.#jobs.get(jobId);
    this.#jobs.delete(jobId);
    job?.fail(error);
  }

  /** Ends all watches. */
  failAll(error: unknown): void {
    for (const jobId of [...this.#jobs.keys()]) this.fail(jobId, error);
  }

  /** A push about a job came. */
  pushed(push: Extract<Push, { type: 'job_settled' | 'job_progress' }>): void {
    const job = this.#jobs.get(push.job_id);
    if (push.type === 'job_progress') {
      job?.progress.push(push.progress);
      return;
    }
    this.#jobs.delete(push.job_id);
    if (push.state === 'completed') job?.settle(completed(push.result.text));
    else job?.settle({ state: push.state, error: outcomeError(push.error) });
  }

  /** Asks for all outcomes again. Jobs whose enqueue is under way are watched by that. */
  renewAll(): void {
    this.renew([...this.#jobs.values()].filter((job) => job.enqueuing === 0).map((job) => job.jobId));
  }

  /** Asks for these outcomes. */
  renew(jobIds: readonly string[]): void {
    if (!this.#connection.terms.extension) {
      for (const jobId of jobIds) this.poll(jobId);
      return;
    }
    for (let at = 0; at < jobIds.length; at += MAX_WATCHED_JOBS) {
      const job_ids = jobIds.slice(at, at + MAX_WATCHED_JOBS);
      void this.#connection.request('watch', { job_ids }, { repeatable: false }).then(
        (reply) => this.#answered(reply),
        (error: unknown) => this.#unanswered(job_ids, error),
      );
    }
  }

  /** At a broker that pushes nothing: begins to ask, unless that is being done. */
  poll(jobId: string): void {
    const job = this.#jobs.get(jobId);
    if (job === undefined || job.polled || this.#connection.terms.extension) return;
    job.polled = true;
    void pollOutcome(this.#connection, jobId, () => !this.#jobs.has(jobId)).then(
      (outcome) => {
        if (outcome === undefined) return;
        this.#jobs.delete(jobId);
        job.settle(outcome);
      },
      (error: unknown) => this.fail(jobId, error),
    );
  }

  #answered(reply: Envelope): void {
    const unknown = reply.value('unknown');
    for (const jobId of Array.isArray(unknown) ? unknown : []) {
      // An enqueue that is being said again right now will make the job known.
      if (this.#jobs.get(String(jobId))?.enqueuing === 0) {
        this.fail(String(jobId), new BrokerError('not_found', 'the broker does not know this job'));
      }
    }
  }

  #unanswered(jobIds: readonly string[], error: unknown): void {
    this.#event('watch.failed', { reason: String(error) });
    // After a cut the next connection asks again.
    if (error instanceof BrokerError && error.code === 'request_timeout' && this.#connection.isUp) {
      this.renew(jobIds.filter((jobId) => this.#jobs.has(jobId)));
    }
  }
}
