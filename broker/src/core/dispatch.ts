/**
 * Which waiting job goes to which executor, decided once per turn. The lane whose head has waited longest is served first; among the
 * executors that have the task and a free slot the one with the fewest executions, then the lowest runtime id.
 * The job and its START are records of this turn; `execute` is an effect of it and so leaves only when they are durable.
 */
import { quote } from '@reelhost/protocol';
import { type Core, recordJob, recordSession } from './core.js';
import { type Job, moveJob } from './job.js';
import { plainBytes } from './job-view.js';
import { FIELD_LEVELS, fitsPlainClient } from './json-measure.js';
import { type Execution, freeSlots, newExecution, type Peer, PLAIN_DECLARATION, reservationOf } from './peer.js';
import type { Lane } from './ready-lanes.js';

/** Starts whatever can be started now. */
export function dispatch(core: Core): void {
  if (!core.dispatchWanted) return;
  core.dispatchWanted = false;
  if (core.draining || core.degraded !== null) return;
  for (;;) {
    let best: { job: Job; lane: Lane; peer: Peer } | null = null;
    for (const [task, servers] of core.servers) {
      for (const lane of core.lanes.of(task)) {
        const job = core.lanes.peek(lane);
        if (job === undefined || (best !== null && best.job.order <= job.order)) continue;
        if (!lane.inSession && queueIsFull(core, lane.queue)) continue;
        const peer = choosePeer(core, servers, lane);
        if (peer !== null) best = { job, lane, peer };
      }
    }
    if (best === null) return;
    core.lanes.drop(best.lane);
    if (!best.peer.extension && best.job.secrets !== 'missing' && !fitsPlainWorker(core, best.job)) {
      core.lanes.move(best.job, best.lane.pin, true);
    } else if (best.job.secrets !== 'missing') start(core, best.job, best.peer);
    else
      core.durations.add(core.now.mono + core.settings.secretsWindowMs, { kind: 'secretsWindow', jobId: best.job.id });
  }
}

/** Whether a plain Tay connection could take the order: one beyond its limits makes it drop its connection and all that runs on it. */
function fitsPlainWorker(core: Core, job: Job): boolean {
  const args = job.args ?? core.archive.readArgs(job);
  return fitsPlainClient(args, plainBytes(core) - 3 * job.secretsGrowth, FIELD_LEVELS);
}

function queueIsFull(core: Core, queue: string): boolean {
  const limit = core.settings.queues[queue] ?? core.settings.queueConcurrency;
  return (core.executing.get(queue) ?? 0) >= limit;
}

function choosePeer(core: Core, servers: Set<Peer>, lane: Lane): Peer | null {
  let best: Peer | null = null;
  for (const peer of servers) {
    if (freeSlots(peer) <= 0 || peer.refusingUntil > core.now.mono) continue;
    if (lane.pin !== null && lane.pin !== peer.pin && lane.pin !== peer.runtimeId) continue;
    if (lane.large && !peer.extension) continue;
    if (best === null || comesBefore(peer, best)) best = peer;
  }
  return best;
}

function comesBefore(a: Peer, b: Peer): boolean {
  if (a.executions.size !== b.executions.size) return a.executions.size < b.executions.size;
  return a.runtimeId < b.runtimeId;
}

function start(core: Core, job: Job, peer: Peer): void {
  moveJob(job, 'executing');
  job.attempt++;
  job.dueAt = null;
  core.counters.executed++;
  const execution = executionOn(core, job, peer);
  job.execution = execution;
  execution.deadline = core.durations.add(core.now.mono + job.timeoutMs, execution.timeoutItem);
  core.executions.set(execution.executionId, execution);
  peer.executions.set(execution.executionId, execution);
  recordJob(core, job);
  if (job.sessionId === null) core.executing.set(job.queue, (core.executing.get(job.queue) ?? 0) + 1);
  else enterSession(core, job, execution, peer);
  sendExecute(core, execution, peer);
}

function executionOn(core: Core, job: Job, peer: Peer): Execution {
  const { instance, generation } = core.identity;
  const executionId = `${instance}.${generation}.${(++core.nextExecution).toString(36)}`;
  const declaration = peer.tasks.get(job.task) ?? PLAIN_DECLARATION;
  const stored = {
    executionId,
    reservationId: reservationOf(executionId),
    runtimeId: peer.runtimeId,
    pid: peer.pid,
    extension: peer.extension,
    idempotent: declaration.idempotent || isIdempotentOp(core, job, declaration.idempotentOps),
    startedAt: core.now.wall,
  };
  return newExecution(job, stored, peer);
}

function isIdempotentOp(core: Core, job: Job, ops: readonly string[]): boolean {
  if (ops.length === 0) return false;
  const op = core.archive.readOp(job.args ?? core.archive.readArgs(job));
  return op !== null && ops.includes(op);
}

function enterSession(core: Core, job: Job, execution: Execution, peer: Peer): void {
  const session = core.sessions.get(job.sessionId as string);
  if (session === undefined) return;
  session.runningExecution = execution;
  if (session.runtimeId === null && (peer.tasks.get(job.task) ?? PLAIN_DECLARATION).sessions === 'pinned') {
    session.runtimeId = peer.runtimeId;
    session.runtimePid = peer.pid;
    recordSession(core, session);
  }
}

function sendExecute(core: Core, execution: Execution, peer: Peer): void {
  const { job, executionId, reservationId } = execution;
  const head = `{"version":1,"type":"execute","request_id":"${executionId}","reservation_id":"${reservationId}","execution_id":"${executionId}","job_id":"${job.id}","task":${quote(job.task)},"args":`;
  let tail = `,"timeout_ms":${job.timeoutMs}`;
  if (peer.extension) {
    tail += `,"attempt":${job.attempt},"queue":${quote(job.queue)}`;
    if (job.sessionId !== null) tail += `,"session_id":${quote(job.sessionId)}`;
  }
  core.effects.push({ kind: 'execute', to: peer.id, head, job, tail: `${tail}}` });
}
