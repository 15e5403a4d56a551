/** Stopping: the `cancel` request, and telling an executor to stop. Cancel is durable first, then best effort at the executor. */
import { type Core, push, refuse, reply } from './core.js';
import { isFinal, type Job } from './job.js';
import { jobText } from './job-view.js';
import { findJob } from './lookup.js';
import type { Execution, Peer, Waiter } from './peer.js';
import { brokerError, hasEnded, settle } from './settlement.js';
import type { RequestOf } from './turn.js';

/** `cancel`. One that is cancelled already is cancelled again with success. */
export function cancelJob(core: Core, peer: Peer, request: RequestOf<'cancel'>): void {
  const { job_id: id, wait_ms: waitMs } = request;
  const job = findJob(core, id);
  if (job === null) return refuse(core, peer, request, 'not_found', `there is no job ${id}`);
  if (job === 'expired') return refuse(core, peer, request, 'cancel_rejected', 'the job is finished');
  if (job.state === 'completed' || job.state === 'discarded') {
    return refuse(core, peer, request, 'cancel_rejected', `the job is ${job.state}`);
  }
  let execution: Execution | null = runningExecutionOf(core, job);
  let ended = true;
  if (!isFinal(job.state)) {
    execution = job.execution;
    if (execution?.connection === null) ended = hasEnded(core, execution);
    settle(core, job, 'cancelled', { result: null, error: brokerError('cancelled') });
    if (execution !== null) stopExecution(core, execution, 'cancel');
  }
  const running = execution !== null && core.executions.has(execution.executionId);
  if (execution !== null && running && waitMs > 0) {
    peer.outstanding.add(request.request_id);
    execution.waiters.push(waiter(core, peer, request.request_id, execution, waitMs));
    return;
  }
  const stopped = peer.extension ? `,"stopped":${!running && ended}` : '';
  const view = jobText(core, peer, job, false);
  reply(core, peer, 'cancelled', request.request_id, `,"status":"${job.state}","job":${view}${stopped}`);
}

function waiter(core: Core, peer: Peer, requestId: string, execution: Execution, waitMs: number): Waiter {
  const item = { kind: 'cancelWait', executionId: execution.executionId, requestId, connection: peer.id } as const;
  return { peer, requestId, item, deadline: core.durations.add(core.now.mono + waitMs, item) };
}

/** A cancelled job's execution that still holds its slot. */
function runningExecutionOf(core: Core, job: Job): Execution | null {
  if (job.state !== 'cancelled') return null;
  for (const execution of core.executions.values()) if (execution.job === job) return execution;
  return null;
}

/** Tells the executor to stop; it may be away or deaf. */
export function stopExecution(core: Core, execution: Execution, reason: 'cancel' | 'timeout' | 'session_closed'): void {
  const peer = execution.connection;
  if (peer === null) return;
  const why = peer.extension ? `,"reason":"${reason}"` : '';
  push(
    core,
    peer,
    'cancel_execution',
    `,"reservation_id":"${execution.reservationId}","execution_id":"${execution.executionId}"${why}`,
  );
}
