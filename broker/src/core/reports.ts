/**
 * What executors say of their executions. A result is durable before it is `accepted`; a report that comes late, or twice, is `accepted`
 * and changes nothing, because an `error` there makes Tay's client drop its connection and everything that runs on it.
 */
import type { Failed, FailureReport, ProgressReport } from '@reelhost/protocol';
import { type Core, log, refuse, reply } from './core.js';
import { withdraw } from './handshake.js';
import { type JobError, TAY_ERROR_CODE } from './job.js';
import { type Execution, type Peer, reservationOf } from './peer.js';
import { brokerError, endExecution, endStopped, putBack, retryLater, settle } from './settlement.js';
import type { RequestOf } from './turn.js';
import { publishProgress } from './watching.js';

interface Ids {
  readonly request_id: string;
  readonly reservation_id: string;
  readonly execution_id: string;
}

/** How long an executor that refused for lack of capacity gets no further job. */
const REFUSAL_PAUSE_MS = 250;

/** The execution a report is about; null when it is late, and then answered already. */
function findExecution(core: Core, peer: Peer, ids: Ids): Execution | null {
  const execution = peer.executions.get(ids.execution_id);
  if (execution !== undefined && execution.reservationId === ids.reservation_id) return execution;
  if (wasIssued(core, ids)) {
    core.counters.late++;
    reply(core, peer, 'accepted', ids.request_id, '');
  } else {
    refuse(core, peer, ids, 'unknown_execution', 'this broker never issued that execution');
  }
  return null;
}

/** Whether a pair of ids comes from this journal's broker; after a restart nothing else is known of an old one. */
function wasIssued(core: Core, { execution_id: id, reservation_id: reservation }: Ids): boolean {
  return id.startsWith(`${core.identity.instance}.`) && reservation === reservationOf(id);
}

/** `started`. It may repeat. */
export function reportStarted(core: Core, peer: Peer, request: RequestOf<'started'>): void {
  const execution = findExecution(core, peer, request);
  if (execution === null) return;
  execution.started = true;
  reply(core, peer, 'accepted', request.request_id, '');
}

/** `succeeded`. */
export function reportSucceeded(core: Core, peer: Peer, request: RequestOf<'succeeded'>, resultBytes: number): void {
  const execution = findExecution(core, peer, request);
  if (execution === null) return;
  const limit = peer.extension ? core.settings.extensionMaxResultBytes : core.settings.maxResultBytes;
  if (execution.phase === 'detached') core.counters.late++;
  else if (resultBytes > limit) {
    finishFailed(
      core,
      execution,
      brokerError('result_too_large', `the result has ${resultBytes} bytes, ${limit} are allowed`),
      true,
    );
  } else settle(core, execution.job, 'completed', { result: request.result.text, error: null });
  endExecution(core, execution, true);
  reply(core, peer, 'accepted', request.request_id, '');
}

/** A report whose content broke a limit: its job fails, its executor goes on. */
export function reportUnusable(
  core: Core,
  peer: Peer,
  ids: Ids,
  type: 'result_invalid' | 'error_too_large',
  text: string,
): void {
  const execution = findExecution(core, peer, ids);
  if (execution === null) return;
  if (execution.phase !== 'detached') finishFailed(core, execution, brokerError(type, text), true);
  endExecution(core, execution, true);
  reply(core, peer, 'accepted', ids.request_id, '');
}

/** `failed`. */
export function reportFailed(core: Core, peer: Peer, request: Failed, errorBytes: number): void {
  const execution = findExecution(core, peer, request);
  if (execution === null) return;
  const limit = peer.extension ? core.settings.extensionMaxErrorBytes : core.settings.maxErrorBytes;
  const error =
    errorBytes > limit
      ? brokerError('error_too_large', `the error has ${errorBytes} bytes, ${limit} are allowed`)
      : errorOf(request.error);
  if (execution.phase === 'detached') core.counters.late++;
  else if (!execution.started && isRefusal(request.error)) takeRefusal(core, execution, peer, request.error);
  else finishFailed(core, execution, error, false);
  endExecution(core, execution, true);
  reply(core, peer, 'accepted', request.request_id, '');
}

function errorOf(report: FailureReport): JobError {
  return {
    type: report.type ?? 'Error',
    message: report.message ?? '',
    retryable: report.retryable === true,
    code: TAY_ERROR_CODE.taskFailed,
    ...(report.traceback === undefined ? {} : { traceback: report.traceback }),
    ...(report.details === undefined ? {} : { details: report.details.text }),
  };
}

/** Ends or repeats a job whose attempt has failed. `final`: another attempt would only fail the same way. */
function finishFailed(core: Core, execution: Execution, error: JobError, final: boolean): void {
  const { job } = execution;
  if (execution.phase === 'stopping') endStopped(core, execution, error);
  else if (!final && job.attempt < job.maxAttempts) retryLater(core, job, error);
  else settle(core, job, 'discarded', { result: null, error });
}

/** Tay's client refuses work it has no room for, or whose task it has dropped, with an ordinary failure and without `started`. */
function isRefusal(report: FailureReport): boolean {
  return (
    report.type === 'TaskNotRegistered' ||
    (report.type === 'ServerError' && report.message === 'executor capacity exceeded')
  );
}

/** Nothing ran, so it costs no attempt: the job goes back to the head of its line. */
function takeRefusal(core: Core, execution: Execution, peer: Peer, report: FailureReport): void {
  core.counters.refusals++;
  log(core, 'warn', 'job.refused', { jobId: execution.job.id, runtimeId: peer.runtimeId, type: report.type });
  peer.refusingUntil = core.now.mono + REFUSAL_PAUSE_MS;
  core.durations.add(peer.refusingUntil, { kind: 'dispatch' });
  if (report.type === 'TaskNotRegistered') withdraw(core, peer, execution.job.task);
  putBack(core, execution.job, execution.job.attempt - 1);
}

/** `progress`: not answered; one for an execution that is not known here is ignored. */
export function reportProgress(core: Core, peer: Peer, request: Ids & { readonly progress: ProgressReport }): void {
  const execution = peer.executions.get(request.execution_id);
  if (execution === undefined || execution.reservationId !== request.reservation_id || execution.phase === 'detached')
    return;
  execution.started = true;
  publishProgress(core, execution.job, JSON.stringify(request.progress));
}
