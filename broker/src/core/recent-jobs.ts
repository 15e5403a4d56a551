/** Finished jobs still in memory, so that a poller and a repeated enqueue need no disk. Bounded by number and bytes, oldest out first. */
import type { Job } from './job.js';

/** Finished jobs by id, as many and as much as allowed. */
export class RecentJobs {
  readonly #jobs = new Map<string, Job>();
  readonly #maxJobs: number;
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(maxJobs: number, maxBytes: number) {
    this.#maxJobs = maxJobs;
    this.#maxBytes = maxBytes;
  }

  get(id: string): Job | undefined {
    return this.#jobs.get(id);
  }

  /** Adds a finished job. Jobs of the turn being committed may not leave: the caller trims after the commit. */
  add(job: Job): void {
    this.#jobs.set(job.id, job);
    this.#bytes += weight(job);
  }

  delete(id: string): void {
    const job = this.#jobs.get(id);
    if (job === undefined) return;
    this.#jobs.delete(id);
    this.#bytes -= weight(job);
  }

  /** Lets the oldest go until both bounds hold. */
  trim(): void {
    if (this.#jobs.size <= this.#maxJobs && this.#bytes <= this.#maxBytes) return;
    for (const [id, job] of this.#jobs) {
      if (this.#jobs.size <= this.#maxJobs && this.#bytes <= this.#maxBytes) return;
      if (!job.stored || job.touched) return;
      this.#jobs.delete(id);
      this.#bytes -= weight(job);
    }
  }
}

function weight(job: Job): number {
  return 512 + (job.args === null ? 0 : job.argsBytes) + (job.result === null ? 0 : job.resultBytes);
}
