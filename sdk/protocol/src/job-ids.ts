/** Ids that are computed, so that asking twice means the same job. All are SHA-256 cut to 16 bytes, in lower-case hex. */
import { hash } from 'node:crypto';

const ALL_ZERO = '0'.repeat(32);

function shortHash(text: string): string {
  const id = hash('sha256', text).slice(0, 32);
  return id === ALL_ZERO ? `${'0'.repeat(31)}1` : id;
}

/** The job id that belongs to a `submission_id`. Neither task nor queue is part of it. */
export function submissionJobId(submissionId: string): string {
  return shortHash(`tay-submission-v1:${submissionId}`);
}

/** The job id of one firing of a schedule; `dueMs` is the due time in UTC milliseconds. */
export function occurrenceJobId(scheduleId: string, dueMs: number): string {
  return shortHash(`tay-schedule-occurrence-v1:${scheduleId}:${dueMs}`);
}

/** Whether a text is a job id: 32 lower-case hex digits, not all zero. */
export function isJobId(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{32}$/.test(value) && value !== ALL_ZERO;
}
