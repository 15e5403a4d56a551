/**
 * How the end of a session begins: somebody closes it; its runtime goes away and does not come back; or nobody closes what was lost.
 * What follows, the job first, then the directory, is in session-closing.ts.
 *
 * A pinned session lives in one process. That process may come back on another connection; another process that uses its runtime id may not.
 */
import { stopExecution } from './cancellation.js';
import { type Core, log, recordSession } from './core.js';
import { isFinal } from './job.js';
import type { Peer } from './peer.js';
import type { Session } from './session.js';
import { continueClosing } from './session-closing.js';
import { brokerError, settle } from './settlement.js';

/** The first look after an absent runtime: a process that is being killed closes its sockets a moment before it is gone. */
const FIRST_LOOK_MS = 30;
const LOOK_MS = 1000;

/** Takes no further job; stops the one that runs and waits for it as long as `graceMs`. */
export function beginClosing(core: Core, session: Session, graceMs: number): void {
  if (session.state === 'closing') return;
  session.state = 'closing';
  recordSession(core, session);
  core.lostSessions.delete(session.id);
  core.durations.cancel(session.lossDeadline, session.lossItem);
  const job = session.running;
  if (job !== null && !isFinal(job.state)) {
    const { execution } = job;
    settle(core, job, 'cancelled', { result: null, error: brokerError('cancelled', 'the session was closed') });
    if (execution !== null) stopExecution(core, execution, 'session_closed');
  }
  if (session.runningExecution === null) session.running = null;
  else session.graceDeadline = core.durations.add(core.now.mono + graceMs, session.graceItem);
  continueClosing(core, session);
}

/** Whether a connection belongs to the runtime that holds a pinned session. One that names no process is taken at its runtime id. */
function holds(peer: Peer, session: Session): boolean {
  if (peer.runtimeId !== session.runtimeId) return false;
  return session.runtimePid === null || session.runtimePid === peer.pid;
}

/** A runtime went away: sessions that live in it are lost unless it comes back in time. */
export function watchPinnedSessions(core: Core, gone: Peer): void {
  for (const session of core.sessions.values()) {
    if (session.state === 'open' && holds(gone, session)) watchPinned(core, session);
  }
}

/** Gives the runtime of a session its window. */
export function watchPinned(core: Core, session: Session): void {
  core.durations.cancel(session.lossDeadline, session.lossItem);
  session.awayUntil = core.now.mono + core.settings.resumeWindowMs;
  session.lossDeadline = core.durations.add(core.now.mono + FIRST_LOOK_MS, session.lossItem);
}

/** Looks after a session whose runtime is away, or which was lost long ago. */
export function sessionLossDue(core: Core, sessionId: string): void {
  const session = core.sessions.get(sessionId);
  if (session === undefined) return;
  if (session.state === 'lost') return forget(core, session);
  if (session.state !== 'open' || session.runtimeId === null) return;
  for (const peer of core.peers.values()) if (holds(peer, session) && peer.tasks.has(session.task)) return;
  const gone = session.runtimePid !== null && !core.archive.isProcessAlive(session.runtimePid);
  if (!gone && core.now.mono < session.awayUntil) {
    const next = Math.min(session.awayUntil, core.now.mono + LOOK_MS);
    session.lossDeadline = core.durations.add(next, session.lossItem);
  } else lose(core, session);
}

function lose(core: Core, session: Session): void {
  session.state = 'lost';
  session.lostAt = core.now.wall;
  recordSession(core, session);
  log(core, 'warn', 'session.lost', { sessionId: session.id, runtimeId: session.runtimeId });
  const job = session.running;
  if (job !== null && !isFinal(job.state) && job.execution === null) {
    settle(core, job, 'discarded', { result: null, error: brokerError('executor_lost') });
  }
  keepLost(core, session);
}

/** A lost session waits to be closed, but not for ever, and not in any number. */
export function keepLost(core: Core, session: Session): void {
  const { lostSessionMs, maxLostSessions } = core.settings;
  const age = Math.max(0, core.now.wall - (session.lostAt ?? core.now.wall));
  core.lostSessions.add(session.id);
  session.lossDeadline = core.durations.add(core.now.mono + Math.max(0, lostSessionMs - age), session.lossItem);
  if (core.lostSessions.size > maxLostSessions) forgetOldestLost(core);
}

/** Closes the session that was lost first. False when none is lost. */
export function forgetOldestLost(core: Core): boolean {
  for (const id of core.lostSessions) {
    const session = core.sessions.get(id);
    if (session === undefined) core.lostSessions.delete(id);
    else {
      forget(core, session);
      return true;
    }
  }
  return false;
}

function forget(core: Core, session: Session): void {
  log(core, 'warn', 'session.forgotten', { sessionId: session.id, lostAt: session.lostAt });
  beginClosing(core, session, core.settings.sessionGraceMs);
}
