/** Finding a job wherever it is: at work, just finished, or only in the journal. */
import type { Core } from './core.js';
import type { Job } from './job.js';

/** The job, `expired` when only its id is kept, or null. */
export function findJob(core: Core, id: string): Job | 'expired' | null {
  return core.jobs.get(id) ?? core.recent.get(id) ?? core.archive.findJob(id);
}
