/** Makes jobs for tests of the journal, without a broker around it. */
import { statSync } from 'node:fs';
import { type Job, noRecords, type Records } from '../src/core/index.js';
import { SystemEntropy } from '../src/entropy.js';
import type { Journal } from '../src/journal/journal.js';
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
    interruptions: 0,
    session_id: null,
    needs_secrets: 0,
    execution: null,
    error: null,
    args_bytes: 9,
    args: '{"n":1.0}',
    end_state: 4,
    completed_at: completedAt,
    end_error: null,
    result_bytes: 200,
    result: JSON.stringify('r'.repeat(198)),
  });
  return Object.assign(job, { stored: false }, more);
}

export function recordsOf(jobs: Job[]): Records {
  return { ...noRecords(), jobs };
}

/** Pages written for 100 jobs, numbered from `seq`, that are enqueued, started and settled in a turn each. */
export function pagesOfJobs(journal: Journal, path: string, seq: number): number {
  const entropy = new SystemEntropy();
  journal.database.pragma('wal_checkpoint(TRUNCATE)');
  journal.database.pragma('wal_autocheckpoint = 0');
  for (let n = seq; n < seq + 100; n++) {
    const job = finishedJob(n, n, { id: n % 2 === 0 ? entropy.jobId() : entropy.submissionJobId(`s${n}`) });
    Object.assign(job, { completedAt: null, state: 'available', result: null, resultBytes: 0 });
    journal.commit(recordsOf([job]));
    Object.assign(job, { state: 'executing', stored: true });
    journal.commit(recordsOf([job]));
    Object.assign(job, { state: 'completed', completedAt: Date.now(), result: '1', resultBytes: 1 });
    journal.commit(recordsOf([job]));
  }
  const pageBytes = (journal.database.pragma('page_size', { simple: true }) as number) + 24;
  return Math.floor(statSync(`${path}-wal`).size / pageBytes);
}
