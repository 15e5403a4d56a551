/**
 * The broker's one step: state, input and time go in; records and effects come out.
 *
 * Order of events in a turn of the driver: any number of inputs → `endTurn` (starts jobs) → the driver commits `records` in one
 * transaction → the driver carries out `effects` in order. Nothing else may change the state, and nothing here waits.
 */
import type { Request } from '@reelhost/protocol';
import { cancelJob, stopExecution } from './cancellation.js';
import { type Core, log, refuse, reply } from './core.js';
import { dispatch } from './dispatch.js';
import { frameDue } from './frame-watch.js';
import { executorAwayDue, hello, peerClosed, peerConnected, registerTasks, unregisterTasks } from './handshake.js';
import { inspect } from './inspection.js';
import { moveJob } from './job.js';
import type { Peer } from './peer.js';
import { result, status } from './queries.js';
import { registryDue, watchRegistry } from './registry.js';
import { reportFailed, reportProgress, reportStarted, reportSucceeded } from './reports.js';
import { cancelSchedule, declareSchedule, scheduleDue } from './schedules.js';
import { closingGraceOver } from './session-closing.js';
import { sessionLossDue } from './session-end.js';
import { closeSession, openSession } from './sessions.js';
import { answerCancel, brokerError, endStopped, settle } from './settlement.js';
import { enqueue, makeReady } from './submission.js';
import type { DueItem, Moment } from './turn.js';
import { progressDue, watch } from './watching.js';

/** A request with what the driver knows about its bytes. */
export interface ReceivedRequest {
  readonly request: Request;
  /** UTF-8 bytes of `args` of an enqueue, of `result` or of `error`, 0 for other types; exact from 2,048 on. */
  readonly bodyBytes: number;
}

export { peerConnected };

/** A request that the protocol package found good. */
export function requestReceived(core: Core, peer: Peer, received: ReceivedRequest): void {
  const { request } = received;
  if (peer.mode === 'new' && request.type !== 'hello') {
    return refuse(core, peer, request, 'hello_required', 'the first request must be hello');
  }
  if (peer.outstanding.size > 0) {
    if (peer.outstanding.has(request.request_id)) {
      return refuse(core, peer, request, 'invalid_request', 'this request_id is still in use');
    }
    if (peer.outstanding.size >= core.settings.maxOutstandingRequests) {
      return refuse(
        core,
        peer,
        request,
        'too_many_requests',
        `${core.settings.maxOutstandingRequests} requests wait for their reply`,
      );
    }
  }
  handle(core, peer, request, received.bodyBytes);
}

function handle(core: Core, peer: Peer, request: Request, bodyBytes: number): void {
  switch (request.type) {
    case 'hello':
      return hello(core, peer, request);
    case 'register_tasks':
      return registerTasks(core, peer, request);
    case 'unregister_tasks':
      return unregisterTasks(core, peer, request);
    case 'heartbeat':
      return reply(core, peer, 'heartbeat_ok', request.request_id, '');
    case 'pong':
      return reply(core, peer, 'accepted', request.request_id, '');
    case 'register_schedules':
      return refuse(core, peer, request, 'bulk_scheduling_unsupported', 'declare schedules one by one with schedule');
    case 'enqueue':
      return enqueue(core, peer, request, bodyBytes);
    case 'status':
      return status(core, peer, request);
    case 'result':
      return result(core, peer, request);
    case 'cancel':
      return cancelJob(core, peer, request);
    case 'schedule':
      return declareSchedule(core, peer, request);
    case 'cancel_schedule':
      return cancelSchedule(core, peer, request);
    case 'started':
      return reportStarted(core, peer, request);
    case 'succeeded':
      return reportSucceeded(core, peer, request, bodyBytes);
    case 'failed':
      return reportFailed(core, peer, request, bodyBytes);
    case 'progress':
      return reportProgress(core, peer, request);
    case 'open_session':
      return openSession(core, peer, request);
    case 'close_session':
      return closeSession(core, peer, request);
    case 'watch':
      return watch(core, peer, request);
    case 'watch_registry':
      return watchRegistry(core, peer, request);
    case 'inspect':
      return inspect(core, peer, request);
  }
}

/** A connection has ended. */
export function connectionClosed(core: Core, id: number): void {
  const peer = core.peers.get(id);
  if (peer !== undefined) peerClosed(core, peer);
}

/** Handles every deadline that has passed. */
export function timePassed(core: Core, now: Moment): void {
  core.now = now;
  for (const item of core.durations.take(now.mono)) due(core, item);
  for (const item of core.appointments.take(now.wall)) due(core, item);
}

function due(core: Core, item: DueItem): void {
  switch (item.kind) {
    case 'jobDue':
      item.job.parked = null;
      if (item.job.state !== 'scheduled' && item.job.state !== 'retryable') return;
      moveJob(item.job, 'available');
      item.job.dueAt = null;
      return makeReady(core, item.job);
    case 'executionTimeout':
      return executionTimedOut(core, item.executionId);
    case 'executorAway':
      return executorAwayDue(core, item.executionId);
    case 'helloTimeout':
      return helloTimedOut(core, item.connection);
    case 'frame':
      return frameDue(core, item.connection);
    case 'cancelWait':
      return cancelWaitOver(core, item);
    case 'sessionGrace': {
      const session = core.sessions.get(item.sessionId);
      return session === undefined ? undefined : closingGraceOver(core, session);
    }
    case 'sessionLoss':
      return sessionLossDue(core, item.sessionId);
    case 'secretsWindow':
      return secretsWindowOver(core, item.jobId);
    case 'progress':
      return progressDue(core, item.jobId);
    case 'registry':
      return registryDue(core);
    case 'dispatch':
      core.dispatchWanted = true;
      return undefined;
    case 'schedule':
      return scheduleDue(core, item.scheduleId);
  }
}

/** The time limit of a run: told to the executor; one that speaks the extension may still report, for a while. */
function executionTimedOut(core: Core, executionId: string): void {
  const execution = core.executions.get(executionId);
  if (execution === undefined || execution.phase === 'detached') return;
  if (execution.phase === 'running') {
    execution.phase = 'stopping';
    execution.stopReason = 'timeout';
    stopExecution(core, execution, 'timeout');
    if (execution.extension) {
      execution.deadline = core.durations.add(core.now.mono + core.settings.timeoutGraceMs, execution.timeoutItem);
      return;
    }
  }
  log(core, 'warn', 'job.timeout', {
    jobId: execution.job.id,
    task: execution.job.task,
    timeoutMs: execution.job.timeoutMs,
  });
  endStopped(core, execution);
}

function helloTimedOut(core: Core, connection: number): void {
  const peer = core.peers.get(connection);
  if (peer === undefined || peer.mode !== 'new') return;
  log(core, 'info', 'peer.hello_timeout', { connection });
  const error = '{"version":1,"type":"error","error":{"code":"hello_timeout","message":"no hello came in time"}}';
  core.effects.push({ kind: 'send', to: connection, text: error }, { kind: 'closeConnection', to: connection });
}

function cancelWaitOver(core: Core, item: Extract<DueItem, { kind: 'cancelWait' }>): void {
  const execution = core.executions.get(item.executionId);
  const waiter = execution?.waiters.find((each) => each.item === item);
  if (execution === undefined || waiter === undefined) return;
  execution.waiters = execution.waiters.filter((each) => each !== waiter);
  answerCancel(core, execution.job, waiter, false);
}

function secretsWindowOver(core: Core, jobId: string): void {
  const job = core.jobs.get(jobId);
  if (job === undefined || job.secrets !== 'missing' || job.state === 'executing') return;
  settle(core, job, 'discarded', { result: null, error: brokerError('secrets_lost') });
}

/** Ends a turn: starts what can be started. */
export function endTurn(core: Core): void {
  dispatch(core);
  core.answered = 0;
}

/** When {@link timePassed} must be called next: in ms from `now`, or null. */
export function nextWakeMs(core: Core, now: Moment): number | null {
  const duration = core.durations.next();
  const appointment = core.appointments.next();
  const waits: number[] = [];
  if (duration !== null) waits.push(duration - now.mono);
  if (appointment !== null) waits.push(appointment - now.wall);
  return waits.length === 0 ? null : Math.max(0, Math.min(...waits));
}
