/**
 * The jobs that could run now. One lane per (queue, task, pinned runtime, in a session or not, large or not): within a lane first come first
 * served, across lanes the dispatcher takes the lane whose head has waited longest, so no task name can starve another.
 * A cancelled job stays in its lane until it reaches the head and is skipped there.
 */
import type { Job } from './job.js';

/** Jobs that may be given to the same executors, in the order they are to run. */
export interface Lane {
  readonly key: string;
  readonly queue: string;
  readonly task: string;
  /** Only this runtime may take it, or null for any. */
  readonly pin: string | null;
  readonly inSession: boolean;
  /** Its jobs are too large for a plain Tay connection. */
  readonly large: boolean;
  jobs: Job[];
  head: number;
}

/** An empty lane is kept for its next job, but not without bound: task names come from outside. */
const KEPT_EMPTY_LANES = 1024;

/** All lanes; one that has become empty is forgotten. */
export class ReadyLanes {
  readonly #lanes = new Map<string, Lane>();
  readonly #byTask = new Map<string, Set<Lane>>();
  #order = 0;

  /** Puts a job that has just become available at the end of its lane. */
  append(job: Job, pin: string | null, large: boolean): void {
    job.order = ++this.#order;
    this.#lane(job, pin, large).jobs.push(job);
  }

  /** Puts a job back where it was: before everything that became available after it. */
  putBack(job: Job, pin: string | null, large: boolean): void {
    const lane = this.#lane(job, pin, large);
    if (lane.head > 0) lane.jobs[--lane.head] = job;
    else lane.jobs.unshift(job);
  }

  /** Puts a job into another lane, at the place its waiting time gives it there. */
  move(job: Job, pin: string | null, large: boolean): void {
    const lane = this.#lane(job, pin, large);
    let low = lane.head;
    for (let high = lane.jobs.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((lane.jobs[middle] as Job).order < job.order) low = middle + 1;
      else high = middle;
    }
    lane.jobs.splice(low, 0, job);
  }

  /** Lanes of a task that hold something. */
  of(task: string): Iterable<Lane> {
    return this.#byTask.get(task) ?? [];
  }

  /** The first job of a lane that still waits, or undefined when the lane is empty (it is dropped then). */
  peek(lane: Lane): Job | undefined {
    while (lane.head < lane.jobs.length) {
      const job = lane.jobs[lane.head] as Job;
      if (job.state === 'available') return job;
      lane.head++;
    }
    lane.jobs.length = 0;
    lane.head = 0;
    if (this.#lanes.size > KEPT_EMPTY_LANES) this.#forget(lane);
    return undefined;
  }

  /** Removes what {@link peek} has just shown. */
  drop(lane: Lane): void {
    lane.head++;
    if (lane.head > 1024 && lane.head * 2 > lane.jobs.length) {
      lane.jobs = lane.jobs.slice(lane.head);
      lane.head = 0;
    }
  }

  #forget(lane: Lane): void {
    this.#lanes.delete(lane.key);
    const siblings = this.#byTask.get(lane.task);
    siblings?.delete(lane);
    if (siblings?.size === 0) this.#byTask.delete(lane.task);
  }

  #lane(job: Job, pin: string | null, large: boolean): Lane {
    const inSession = job.sessionId !== null;
    const key = `${job.queue}\0${job.task}\0${pin ?? ''}\0${inSession ? 1 : 0}${large ? 1 : 0}`;
    const known = this.#lanes.get(key);
    if (known !== undefined) return known;
    const lane: Lane = { key, queue: job.queue, task: job.task, pin, inSession, large, jobs: [], head: 0 };
    this.#lanes.set(key, lane);
    const siblings = this.#byTask.get(job.task);
    if (siblings === undefined) this.#byTask.set(job.task, new Set([lane]));
    else siblings.add(lane);
    return lane;
  }
}
