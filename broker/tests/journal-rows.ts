/** Makes jobs for tests of the journal, without a broker around it. */
import { type Job, noRecords, type Records } from '../src/core/index.js';
import { jobOf } from '../src/journal/rows.js';

/** A finished job. */
export function finishedJob(seq: number, completedAt: number, more: Partial<Job> = {}): Job {
  const job = jobOf({
    seq,
    id: `f${seq.toString(16).padStart(31, '0')}`,
    task: 't',
    queue: 'default',
    state: 4,
    attempt: 1,
    max_attempts: 1,
    timeout_ms: 30_000,
    delay_ms: null,
    run_at: null,
    created_at: completedAt - 5,
    due_at: null,
    completed_at: completedAt,
    interruptions: 0,
    session_id: null,
    needs_secrets: 0,
    execution: null,
    error: null,
    args_bytes: 9,
    args: '{"n":1.0}',
    result_bytes: 200,
    result: JSON.stringify('r'.repeat(198)),
  });
  return Object.assign(job, { stored: false }, more);
}

export function recordsOf(jobs: Job[]): Records {
  return { ...noRecords(), jobs };
}
