/** How a peer introduces itself, what it can do, and what its leaving means. Tay v1, section 3.1; docs/local-protocol.md, Negotiation. */
import { EXTENSION, type Hello, type RegisterTasks, type ResumeEntry } from '@reelhost/protocol';
import { stopExecution } from './cancellation.js';
import { type Core, log, refuse, reply } from './core.js';
import { type Execution, newPeer, type Peer, PLAIN_DECLARATION, pinKey } from './peer.js';
import { registryChanged } from './registry.js';
import { watchPinnedSessions } from './session-end.js';
import { resumableExecutions } from './settings.js';
import { endExecution, interrupt, putBack } from './settlement.js';
import type { RequestOf } from './turn.js';
import { forgetWatches } from './watching.js';

/** How often an absent executor's process is looked at while its window runs. */
const AWAY_CHECK_MS = 200;
/** The first look: a process that is being killed closes its sockets a moment before it is gone. */
const FIRST_AWAY_CHECK_MS = 30;

/** A connection was made; it has to say hello in time. */
export function peerConnected(core: Core, id: number): void {
  const peer = newPeer(id, core.now.mono);
  core.peers.set(id, peer);
  peer.helloDeadline = core.durations.add(core.now.mono + core.settings.helloTimeoutMs, peer.helloItem);
}

/** `hello`. */
export function hello(core: Core, peer: Peer, request: Hello): void {
  if (peer.mode !== 'new')
    return refuse(core, peer, request, 'already_hello', 'hello was already answered on this connection');
  core.durations.cancel(peer.helloDeadline, peer.helloItem);
  peer.mode = request.mode;
  peer.runtimeId = request.runtime_id;
  peer.extension = request.extensions?.includes(EXTENSION) === true;
  // Never more than it could name when it comes back: what it cannot resume would be lost.
  const most = peer.extension ? resumableExecutions(core.settings) : request.max_concurrency;
  peer.maxConcurrency = Math.min(request.max_concurrency, most);
  peer.pid = request.pid ?? null;
  peer.pin = peer.pid === null ? '' : pinKey(peer.runtimeId, peer.pid);
  peer.software = request.software ?? null;
  let fields = `,"mode":"${request.mode}","max_concurrency":${peer.maxConcurrency}`;
  if (peer.extension) {
    fields += extensionFields(core, peer, request.resume ?? []);
  }
  reply(core, peer, 'hello_ok', request.request_id, fields);
  // Told while nobody heard it: said again.
  for (const execution of peer.executions.values())
    if (execution.phase === 'stopping') stopExecution(core, execution, 'timeout');
  log(core, 'info', 'peer.hello', {
    connection: peer.id,
    mode: peer.mode,
    runtimeId: peer.runtimeId,
    extension: peer.extension,
    software: peer.software,
    pid: peer.pid,
  });
}

function extensionFields(core: Core, peer: Peer, entries: readonly ResumeEntry[]): string {
  const { version, generation, instance } = core.identity;
  const { settings } = core;
  const resume = entries.map((entry) => ({
    execution_id: entry.execution_id,
    wanted: resumeExecution(core, peer, entry),
  }));
  if (peer.mode !== 'client') settleForgotten(core, peer);
  return (
    `,"extensions":["${EXTENSION}"],"broker":${JSON.stringify({ version, generation, instance })}` +
    `,"limits":${JSON.stringify({
      max_frame_bytes: settings.extensionMaxFrameBytes,
      max_result_bytes: settings.extensionMaxResultBytes,
      max_error_bytes: settings.extensionMaxErrorBytes,
      max_args_bytes: settings.extensionMaxArgsBytes,
      max_outstanding_requests: settings.maxOutstandingRequests,
      max_tasks_per_message: settings.maxTasksPerMessage,
    })},"resume":${JSON.stringify(resume)}`
  );
}

/** Takes an execution over to the connection its executor has come back on. False: it must be stopped and forgotten. */
function resumeExecution(core: Core, peer: Peer, entry: ResumeEntry): boolean {
  const execution = core.executions.get(entry.execution_id);
  if (execution === undefined || execution.reservationId !== entry.reservation_id) return false;
  if (execution.runtimeId !== peer.runtimeId || execution.phase === 'detached') return false;
  execution.connection?.executions.delete(execution.executionId);
  core.durations.cancel(execution.awayDeadline, execution.awayItem);
  execution.connection = peer;
  execution.started = true;
  peer.executions.set(execution.executionId, execution);
  log(core, 'info', 'execution.resumed', { jobId: execution.job.id, runtimeId: peer.runtimeId, state: entry.state });
  return true;
}

/** The same process is back and does not list an execution: it never got it when it never said `started`, and lost it when it did. */
function settleForgotten(core: Core, peer: Peer): void {
  for (const execution of [...core.executions.values()]) {
    if (execution.connection !== null || execution.runtimeId !== peer.runtimeId || execution.pid !== peer.pid) continue;
    if (execution.phase === 'running' && !execution.started && peer.pid !== null) {
      putBack(core, execution.job, execution.job.attempt - 1);
      endExecution(core, execution, true);
    } else interrupt(core, execution);
  }
}

/** `register_tasks`: adds, or replaces the declaration. */
export function registerTasks(core: Core, peer: Peer, request: RegisterTasks): void {
  if (peer.mode === 'client')
    return refuse(
      core,
      peer,
      request,
      'client_cannot_execute',
      'a client has no tasks; say hello as worker or embedded',
    );
  const more = request.tasks.filter((task) => !peer.tasks.has(task)).length;
  if (peer.tasks.size + more > core.settings.maxTasksPerPeer) {
    const text = `a connection may serve ${core.settings.maxTasksPerPeer} tasks`;
    return refuse(core, peer, request, 'invalid_tasks', text);
  }
  for (const task of request.tasks) {
    const declared = request.declarations?.[task];
    peer.tasks.set(
      task,
      declared === undefined
        ? PLAIN_DECLARATION
        : {
            attributes: declared.attributes.text,
            sessions: declared.sessions,
            idempotent: declared.idempotent,
            idempotentOps: declared.idempotent_ops,
          },
    );
    const servers = core.servers.get(task);
    if (servers === undefined) core.servers.set(task, new Set([peer]));
    else servers.add(peer);
  }
  core.dispatchWanted = true;
  registryChanged(core);
  reply(core, peer, 'tasks_registered', request.request_id, `,"tasks":${JSON.stringify(request.tasks)}`);
}

/** `unregister_tasks`: what runs goes on. */
export function unregisterTasks(core: Core, peer: Peer, request: RequestOf<'unregister_tasks'>): void {
  if (peer.mode === 'client') return refuse(core, peer, request, 'client_cannot_execute', 'a client has no tasks');
  for (const task of request.tasks) withdraw(core, peer, task);
  registryChanged(core);
  reply(core, peer, 'tasks_unregistered', request.request_id, `,"tasks":${JSON.stringify(request.tasks)}`);
}

/** A task is no longer offered by a peer. */
export function withdraw(core: Core, peer: Peer, task: string): void {
  peer.tasks.delete(task);
  const servers = core.servers.get(task);
  servers?.delete(peer);
  if (servers?.size === 0) core.servers.delete(task);
}

/** A connection has ended: its capacity goes at once, what ran on it may come back. */
export function peerClosed(core: Core, peer: Peer): void {
  peer.closed = true;
  core.peers.delete(peer.id);
  core.durations.cancel(peer.helloDeadline, peer.helloItem);
  core.durations.cancel(peer.frameDeadline, peer.frameItem);
  forgetWatches(core, peer);
  core.registryWatchers.delete(peer);
  for (const task of [...peer.tasks.keys()]) withdraw(core, peer, task);
  for (const execution of [...peer.executions.values()]) executorGone(core, peer, execution);
  peer.executions.clear();
  core.dispatchWanted = true;
  if (peer.mode === 'worker' || peer.mode === 'embedded') {
    registryChanged(core);
    watchPinnedSessions(core, peer);
  }
}

function executorGone(core: Core, peer: Peer, execution: Execution): void {
  peer.executions.delete(execution.executionId);
  execution.connection = null;
  if (!execution.extension || execution.phase === 'detached') return interrupt(core, execution);
  waitForExecutor(core, execution);
}

/** Gives an absent executor its window, shorter when its process is seen to be gone. */
export function waitForExecutor(core: Core, execution: Execution): void {
  execution.awayUntil = core.now.mono + core.settings.resumeWindowMs;
  execution.awayDeadline = core.durations.add(core.now.mono + FIRST_AWAY_CHECK_MS, execution.awayItem);
}

/** Looks after an absent executor. */
export function executorAwayDue(core: Core, executionId: string): void {
  const execution = core.executions.get(executionId);
  if (execution === undefined || execution.connection !== null) return;
  const gone = execution.pid !== null && !core.archive.isProcessAlive(execution.pid);
  if (gone || core.now.mono >= execution.awayUntil) return interrupt(core, execution);
  const next = Math.min(execution.awayUntil, core.now.mono + AWAY_CHECK_MS);
  execution.awayDeadline = core.durations.add(next, execution.awayItem);
}
