/** How jobs and their errors look on the wire. Tay's local executor protocol v1, section 3.2, and docs/local-protocol.md. */
import { quote } from '@reelhost/protocol';
import type { Core } from './core.js';
import { isFinal, type Job, type JobError } from './job.js';
import { DETAILS_LEVELS, fitsPlainClient, isWithin, JOB_ARGS_LEVELS } from './json-measure.js';
import type { Peer } from './peer.js';

/** Room for everything beside the arguments or the result in a message. */
const ENVELOPE_BYTES = 4096;

/** Whether a text is too large for a frame of a plain Tay connection. */
export function isLarge(core: Core, bytes: number): boolean {
  return bytes * 3 > plainBytes(core);
}

/** The `job` object as a peer sees it: `full` with its arguments, unless the peer could not take them. */
export function jobText(core: Core, peer: Peer, job: Job, full: boolean): string {
  let args = '';
  if (full || !peer.extension) {
    const text = job.args ?? core.archive.readArgs(job);
    const fits = peer.extension
      ? isWithin(text, JOB_ARGS_LEVELS)
      : fitsPlainClient(text, plainBytes(core), JOB_ARGS_LEVELS);
    args = fits ? `,"args":${text}` : ',"args":null';
  }
  return viewText(job, args, peer.extension ? '' : ',"durability":"persistent"');
}

/** Bytes that fit into a frame of a plain Tay connection beside everything else in it. */
export function plainBytes(core: Core): number {
  return core.settings.maxFrameBytes - ENVELOPE_BYTES;
}

/** A job without its arguments, for lists. */
export function jobSummary(job: Job): string {
  return viewText(job, '', '');
}

function viewText(job: Job, args: string, more: string): string {
  const scheduledAt = job.state === 'executing' || isFinal(job.state) ? null : (job.dueAt ?? job.createdAt);
  let text = `{"id":"${job.id}","task":${quote(job.task)}${args}`;
  text += `,"state":"${job.state}","attempt":${job.attempt},"max_attempts":${job.maxAttempts},"queue":${quote(job.queue)}`;
  text += `,"scheduled_at":${scheduledAt},"completed_at":${job.completedAt},"errors":${errorsText(job.error)}${more}`;
  if (job.sessionId !== null) text += `,"session_id":${quote(job.sessionId)}`;
  return `${text}}`;
}

/** Tay shows `{code, version}`; what the executor said is kept and shown beside it. */
function errorsText(error: JobError | null): string {
  if (error === null) return '[]';
  let text = `[{"code":${error.code},"version":1,"type":${JSON.stringify(error.type)},"message":${JSON.stringify(error.message)}`;
  if (error.traceback !== undefined) text += `,"traceback":${JSON.stringify(error.traceback)}`;
  return `${text}}]`;
}

/** The error object of the extension: `{type, message, retryable, details?}`. */
export function errorText(error: JobError): string {
  let text = `{"type":${JSON.stringify(error.type)},"message":${JSON.stringify(error.message)},"retryable":${error.retryable}`;
  if (error.details !== undefined) text += `,"details":${error.details}`;
  if (error.traceback !== undefined) text += `,"traceback":${JSON.stringify(error.traceback)}`;
  return `${text}}`;
}

/** The error of a job inside the error of a request, a level lower: details that become too deep there are left out. */
export function nestedErrorText(error: JobError): string {
  if (error.details === undefined || isWithin(error.details, DETAILS_LEVELS)) return errorText(error);
  const { details: _, ...rest } = error;
  return errorText(rest);
}

/** The fields of `job_settled` after its request id. `result` is the raw result of a completed job. */
export function settledFields(job: Job, result: string): string {
  if (job.state === 'completed') return `,"job_id":"${job.id}","state":"completed","result":${result}`;
  const error = job.error ?? { type: job.state, message: '', retryable: false, code: 0 };
  return `,"job_id":"${job.id}","state":"${job.state}","error":${errorText(error)}`;
}
