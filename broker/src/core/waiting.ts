/** Jobs that wait for a moment. One that ends before it is taken out, so that a far moment holds nobody's arguments. */
import type { Core } from './core.js';
import type { Deadlines } from './deadlines.js';
import type { Job } from './job.js';
import type { DueItem } from './turn.js';

/** Lets a job wait for a moment of one of the two clocks. */
export function park(job: Job, deadlines: Deadlines<DueItem>, at: number): void {
  const item: DueItem = { kind: 'jobDue', job };
  job.parked = { item, bucket: deadlines.add(at, item) };
}

/** The job waits no longer. */
export function unpark(core: Core, job: Job): void {
  if (job.parked === null) return;
  core.durations.cancel(job.parked.bucket, job.parked.item);
  core.appointments.cancel(job.parked.bucket, job.parked.item);
  job.parked = null;
}
