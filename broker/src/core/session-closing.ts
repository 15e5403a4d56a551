/** The end of a session: its job first, then its directory, then the answers. docs/local-protocol.md, `close_session`. */
import { type Core, recordSession, reply } from './core.js';
import { type Session, sessionText } from './session.js';

/** Goes on with a closing session when nothing runs in it any more. */
export function continueClosing(core: Core, session: Session): void {
  if (session.removing || session.runningExecution !== null || session.running !== null) return;
  removeDirectory(core, session);
}

/** The grace is over: the directory goes although the executor has not reported. */
export function closingGraceOver(core: Core, session: Session): void {
  if (session.state !== 'closing' || session.removing) return;
  session.stopped = session.runningExecution === null;
  if (session.runningExecution !== null) core.outlived.set(session.runningExecution.executionId, session);
  session.running = null;
  session.runningExecution = null;
  removeDirectory(core, session);
}

function removeDirectory(core: Core, session: Session): void {
  session.removing = true;
  core.durations.cancel(session.graceDeadline, session.graceItem);
  core.effects.push({ kind: 'removeSessionDirectory', sessionId: session.id });
}

/** The directory is gone. */
export function directoryRemoved(core: Core, sessionId: string): void {
  const session = core.sessions.get(sessionId);
  if (session === undefined || session.state !== 'closing') return;
  session.state = 'closed';
  session.closedAt = core.now.wall;
  recordSession(core, session);
  core.sessions.delete(sessionId);
  for (const waiter of session.closers)
    reply(core, waiter.peer, 'session_closed', waiter.requestId, closedFields(core, session));
  session.closers = [];
}

/** The fields of `session_closed`. */
export function closedFields(core: Core, session: Session): string {
  return `,"session":${sessionText(session, core.archive.sessionDirectory(session.id))},"stopped":${session.stopped}`;
}
