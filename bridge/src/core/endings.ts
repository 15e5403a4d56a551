/**
 * How jobs end. A job gets exactly one terminal message; it is written down before it is sent, goes out when the local work has stopped or at its deadline, and is
 * kept until the gateway has surely read it (leases.ts). A close by the engine ends as succeeded, a cancel as cancelled, everything else as fail.
 */
import { CANCEL_GRACE_SEC, type Cancel } from '@reelhost/bridge-protocol';
import { loseJob } from './leases.js';
import type { Ending, Job, Terminal } from './state.js';
import {
  isTearingDown,
  log,
  openLink,
  putJob,
  sendTerminal,
  TEARDOWN_RETRY_MS,
  type Turn,
  tearDown,
  update,
} from './turn.js';

/** Room between the deadline of a cancel and our answer, for a slow wire. */
const ANSWER_MARGIN_MS = 800;
/** Room between the kill of the work and our answer, for cleaning up. */
const CLEAN_MARGIN_MS = 1_200;
/** A process that ignores SIGTERM is killed this long after a cancel at the latest. */
const MAX_KILL_GRACE_MS = 8_000;
/** The bridge ends over-age and idle sessions this much later than the gateway should have. */
export const BACKSTOP_MS = 15_000;
/** After a resume, this long is left for the gateway to ask again for the answer to `close`. */
const CLOSE_REPLAY_MS = 2_000;
/** Teardowns are asked for this often before the slot is given back with a warning. */
const TEARDOWN_TRIES = 12;

/** Error codes that say the job's input was bad; every other failure is the runner's own. Never `platform` (Error and failure classes). */
const INPUT_CODES: ReadonlySet<string> = new Set(['invalid_media', 'input_unreadable', 'input_invalid']);

/** The class a failure honestly has. */
export function failClassOf(code: string): 'runner' | 'input' {
  return INPUT_CODES.has(code) ? 'input' : 'runner';
}

/** A fail message; input failures are never retryable. */
export function failure(code: string, message: string, retryable: boolean): Terminal {
  const failClass = failClassOf(code);
  return { type: 'fail', failClass, code, message, retryable: retryable && failClass !== 'input' };
}

/** Ends the job: nothing more is started for it, its session goes, the message follows within `answerMs`. */
export function endJob(
  turn: Turn,
  job: Job,
  terminal: Terminal,
  limits: { readonly answerMs: number; readonly killMs: number; readonly closeOpId?: string },
): void {
  const ending: Ending = {
    terminal,
    sendBy: turn.now + limits.answerMs,
    sent: null,
    closeOpId: limits.closeOpId ?? null,
  };
  putJob(turn, { ...job, op: null, ending }, true);
  log(turn, 'info', 'job.ending', {
    jobId: job.jobId,
    epoch: job.epoch,
    how: terminal.type === 'complete' ? terminal.outcome : terminal.code,
  });
  const isActive = job.ending === null || isTearingDown(turn.state, job.jobId);
  if (job.session !== null && isActive) tearDown(turn, job.jobId, job.session.localId, limits.killMs);
}

/** The gateway wants the job stopped. `cancel` has no epoch: it means the job as held now. */
export function cancelled(turn: Turn, jobId: string, cancel: Cancel): void {
  const answerMs = Math.max(0, Math.min(CANCEL_GRACE_SEC, cancel.graceSec) * 1_000 - ANSWER_MARGIN_MS);
  const killMs = Math.max(0, Math.min(MAX_KILL_GRACE_MS, answerMs - CLEAN_MARGIN_MS));
  const offer = turn.state.offers.get(jobId);
  const job = offer?.job ?? turn.state.jobs.get(jobId);
  log(turn, 'info', 'cancel.received', { jobId, reason: cancel.reason, held: job !== undefined });
  if (offer !== undefined) {
    const offers = new Map(turn.state.offers);
    offers.delete(jobId);
    update(turn, { offers });
  }
  if (job === undefined || (job.ending !== null && job.ending.sent !== null)) return;
  endJob(turn, job, { type: 'complete', outcome: 'cancelled' }, { answerMs, killMs });
}

/** Sends each terminal message whose time has come. */
export function deliverEndings(turn: Turn): void {
  for (const job of turn.state.jobs.values()) {
    const ending = job.ending;
    if (ending === null || ending.terminal === null || ending.sent !== null) continue;
    const due = turn.now >= ending.sendBy || (ending.closeOpId === null && !isTearingDown(turn.state, job.jobId));
    if (!due || openLink(turn.state) === null) continue;
    sendTerminal(turn, job, ending.terminal);
    const link = openLink(turn.state);
    if (link !== null) {
      putJob(turn, { ...job, ending: { ...ending, sent: { generation: link.generation, seq: link.seq } } }, false);
    }
  }
}

/** The connection is gone: what was sent on it and not settled counts as unsent. A job nobody owes anything for is forgotten. */
export function unsendEndings(turn: Turn): void {
  for (const job of turn.state.jobs.values()) {
    if (job.ending === null) continue;
    if (job.ending.terminal === null) loseJob(turn, job, 'not_resumed');
    else if (job.ending.sent !== null) putJob(turn, { ...job, ending: { ...job.ending, sent: null } }, false);
  }
}

/**
 * After a welcome: jobs the gateway kept go on. All others are stopped and wait for the cancel that follows, which is answered like any other; also a
 * finished one, which the gateway may know to be finished: it discards the answer.
 */
export function resumed(turn: Turn, listed: ReadonlyMap<string, number>, kept: ReadonlyMap<string, number>): void {
  for (const job of turn.state.jobs.values()) {
    if (kept.get(job.jobId) === job.epoch && listed.get(job.jobId) === job.epoch) {
      log(turn, 'info', 'job.resumed', { jobId: job.jobId, epoch: job.epoch });
      if (job.ending?.closeOpId != null) {
        putJob(turn, { ...job, ending: { ...job.ending, sendBy: turn.now + CLOSE_REPLAY_MS } }, false);
      }
    } else {
      log(turn, 'warn', 'lease.lost', { jobId: job.jobId, epoch: job.epoch, why: 'not_resumed' });
      const ending: Ending = { terminal: null, sendBy: turn.now, sent: null, closeOpId: null };
      putJob(turn, { ...job, op: null, ending }, false);
      turn.records.push({ kind: 'deleteJob', jobId: job.jobId });
      if (job.ending === null && job.session !== null)
        tearDown(turn, job.jobId, job.session.localId, MAX_KILL_GRACE_MS);
    }
  }
}

/** Ends sessions that are over their age or idle limit, a little after the gateway should have. */
export function endOverdue(turn: Turn): void {
  for (const job of turn.state.jobs.values()) {
    if (job.ending !== null || turn.now < overdueAt(job)) continue;
    const idle = turn.now < job.acceptedAt + job.timeoutSec * 1_000 + BACKSTOP_MS;
    const text = idle ? `no op for ${job.idleTimeoutSec} s` : `the session is older than ${job.timeoutSec} s`;
    endJob(turn, job, failure('timeout', text, false), {
      answerMs: CANCEL_GRACE_SEC * 1_000,
      killMs: MAX_KILL_GRACE_MS,
    });
  }
}

/** When {@link endOverdue} will end the job. */
export function overdueAt(job: Job): number {
  const age = job.acceptedAt + job.timeoutSec * 1_000 + BACKSTOP_MS;
  return job.op === null ? Math.min(age, job.lastOpAt + job.idleTimeoutSec * 1_000 + BACKSTOP_MS) : age;
}

/** The broker answered a close_session. What still runs is asked for again, but not for ever. */
export function sessionClosed(turn: Turn, localId: string, gone: boolean): void {
  const teardown = turn.state.teardowns.get(localId);
  if (teardown === undefined || !gone) return;
  forgetTeardown(turn, localId);
}

/** Asks again for every teardown whose answer is overdue; `all` after the broker came back. */
export function retryTeardowns(turn: Turn, all: boolean): void {
  for (const teardown of turn.state.teardowns.values()) {
    if (!all && turn.now < teardown.retryAt) continue;
    if (!all && teardown.tries >= TEARDOWN_TRIES) {
      log(turn, 'error', 'session.stuck', { sessionId: teardown.localId, jobId: teardown.jobId });
      forgetTeardown(turn, teardown.localId);
      continue;
    }
    const graceMs = Math.min(teardown.graceMs, CLEAN_MARGIN_MS);
    const next = { ...teardown, tries: teardown.tries + 1, retryAt: turn.now + graceMs + TEARDOWN_RETRY_MS };
    update(turn, { teardowns: new Map(turn.state.teardowns).set(teardown.localId, next) });
    turn.effects.push({ kind: 'closeSession', localId: teardown.localId, graceMs });
  }
}

function forgetTeardown(turn: Turn, localId: string): void {
  const teardowns = new Map(turn.state.teardowns);
  teardowns.delete(localId);
  update(turn, { teardowns });
}
