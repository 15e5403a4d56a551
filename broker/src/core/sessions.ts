/** Opening and closing sessions. docs/local-protocol.md, Sessions. */

import { stopExecution } from './cancellation.js';
import { type Core, messageText, recordSession, refuse, refuseDegraded, reply } from './core.js';
import { isFinal } from './job.js';
import type { Peer } from './peer.js';
import { type Session, sessionText } from './session.js';
import { closedFields } from './session-closing.js';
import { beginClosing, forgetOldestLost } from './session-end.js';
import { brokerError, settle } from './settlement.js';
import type { RequestOf } from './turn.js';

/** A session that is open and has no directory yet. */
export function newSession(id: string, task: string, labels: string, openedAt: number): Session {
  return {
    id,
    task,
    labels,
    openedAt,
    state: 'open',
    closedAt: null,
    runtimeId: null,
    runtimePid: null,
    lostAt: null,
    running: null,
    runningExecution: null,
    closers: [],
    graceDeadline: -1,
    graceItem: { kind: 'sessionGrace', sessionId: id },
    removing: false,
    lossDeadline: -1,
    lossItem: { kind: 'sessionLoss', sessionId: id },
    awayUntil: 0,
    kept: [],
    stopped: true,
    stored: false,
    touched: false,
  };
}

/** A session in memory or in the journal. */
export function findSession(core: Core, id: string): Session | null {
  return core.sessions.get(id) ?? core.archive.findSession(id);
}

/** What is said of a session that is asked to serve a task that is not its own. */
export function anotherTask({ id, task }: Session): string {
  return `session ${id} is open for the task ${task}; open another session for another task`;
}

/** `open_session`. Opening an open session again is not an error. */
export function openSession(core: Core, peer: Peer, request: RequestOf<'open_session'>): void {
  const { session_id: id, task } = request;
  const known = findSession(core, id);
  if (known !== null) {
    if (known.state === 'lost')
      return refuse(core, peer, request, 'session_lost', `session ${id} lost the runtime that held it`);
    if (known.state !== 'open') return refuse(core, peer, request, 'session_closed', `session ${id} is closed`);
    if (known.task !== task) return refuse(core, peer, request, 'session_conflict', anotherTask(known));
    // Nothing has run in it: its directory may be missing, because the broker died before it was made.
    if (known.kept.length === 0 && known.running === null) return makeDirectory(core, peer, request, known);
    return reply(core, peer, 'session_opened', request.request_id, `,"session":${textOf(core, known)}`);
  }
  if (core.draining) return refuse(core, peer, request, 'unavailable', 'the broker is stopping');
  if (core.degraded !== null) return refuseDegraded(core, peer, request, core.degraded);
  // A lost session that nobody closes must not keep a new one out.
  if (core.sessions.size >= core.settings.maxSessions && !forgetOldestLost(core)) {
    return refuse(
      core,
      peer,
      request,
      'capacity',
      `the broker holds ${core.settings.maxSessions} sessions`,
      ',"reason":"sessions"',
    );
  }
  const session = newSession(id, task, JSON.stringify(request.labels), core.now.wall);
  core.sessions.set(id, session);
  recordSession(core, session);
  makeDirectory(core, peer, request, session);
}

function makeDirectory(core: Core, peer: Peer, request: RequestOf<'open_session'>, session: Session): void {
  core.effects.push({
    kind: 'makeSessionDirectory',
    sessionId: session.id,
    to: peer.id,
    requestId: request.request_id,
    done: messageText('session_opened', request.request_id, `,"session":${textOf(core, session)}`),
  });
}

function textOf(core: Core, session: Session): string {
  return sessionText(session, core.archive.sessionDirectory(session.id));
}

/** `close_session`: no further job; a running one is stopped and waited for. */
export function closeSession(core: Core, peer: Peer, request: RequestOf<'close_session'>): void {
  const { session_id: id } = request;
  const session = findSession(core, id);
  if (session === null) return refuse(core, peer, request, 'session_not_found', `there is no session ${id}`);
  if (session.state === 'closed')
    return reply(core, peer, 'session_closed', request.request_id, closedFields(core, session));
  peer.outstanding.add(request.request_id);
  session.closers.push({ peer, requestId: request.request_id, deadline: -1, item: session.graceItem });
  beginClosing(core, session, request.grace_ms);
}

/** Its directory could not be made: the session never was, and may be opened again. A job that was sent for it in the same breath ends with it. */
export function directoryFailed(core: Core, sessionId: string): void {
  const session = core.sessions.get(sessionId);
  if (session === undefined || session.state !== 'open') return;
  core.sessions.delete(sessionId);
  const job = session.running;
  if (job !== null && !isFinal(job.state)) {
    const { execution } = job;
    settle(core, job, 'discarded', {
      result: null,
      error: brokerError('executor_lost', 'its session has no directory'),
    });
    if (execution !== null) stopExecution(core, execution, 'session_closed');
  }
  core.durations.cancel(session.lossDeadline, session.lossItem);
  core.records.forgottenSessions.push(sessionId);
}
