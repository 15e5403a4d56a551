/** Questions about jobs. They change nothing. */
import { type Core, refuse, reply } from './core.js';
import type { JobError } from './job.js';
import { jobText, nestedErrorText, plainBytes } from './job-view.js';
import { FIELD_LEVELS, fitsPlainClient } from './json-measure.js';
import { findJob } from './lookup.js';
import type { Peer } from './peer.js';
import { resultOf } from './submission.js';
import type { RequestOf } from './turn.js';

/** `status`. */
export function status(core: Core, peer: Peer, request: RequestOf<'status'>): void {
  const job = findJob(core, request.job_id);
  if (job === null) return refuse(core, peer, request, 'not_found', `there is no job ${request.job_id}`);
  if (job === 'expired') return refuseExpired(core, peer, request);
  reply(core, peer, 'status', request.request_id, `,"status":"${job.state}","job":${jobText(core, peer, job, true)}`);
}

/** `result`. A cancelled job has a code of its own, also for plain Tay connections: one that polls on `result_not_ready` would never end. */
export function result(core: Core, peer: Peer, request: RequestOf<'result'>): void {
  const job = findJob(core, request.job_id);
  if (job === null) return refuse(core, peer, request, 'not_found', `there is no job ${request.job_id}`);
  if (job === 'expired') return refuseExpired(core, peer, request);
  switch (job.state) {
    case 'completed': {
      const text = resultOf(core, job);
      if (!peer.extension && !fitsPlainClient(text, plainBytes(core), FIELD_LEVELS)) {
        return refuse(
          core,
          peer,
          request,
          'result_too_large',
          'this connection cannot take the result; ask with reelhost.1',
        );
      }
      return reply(core, peer, 'result', request.request_id, `,"result":${text}`);
    }
    case 'discarded':
      return refuse(core, peer, request, 'task_failed', job.error?.message || 'the task failed', errorField(job.error));
    case 'cancelled':
      return refuse(core, peer, request, 'job_cancelled', 'the job was cancelled', errorField(job.error));
    case 'scheduled':
    case 'available':
    case 'executing':
    case 'retryable':
      return refuse(core, peer, request, 'result_not_ready', `the job is ${job.state}`);
  }
}

function errorField(error: JobError | null): string {
  return error === null ? '' : `,"error":${nestedErrorText(error)}`;
}

/** Its result is no longer kept. A plain Tay connection knows no such code; to it the job is unknown. */
function refuseExpired(core: Core, peer: Peer, request: RequestOf<'status' | 'result'>): void {
  const code = peer.extension ? 'job_expired' : 'not_found';
  refuse(core, peer, request, code, `job ${request.job_id} ran, but its result is no longer kept`);
}
