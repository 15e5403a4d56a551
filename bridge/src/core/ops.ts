/**
 * op.request → one local job → op.response. At most one op of a session runs. A repeated opId is never executed again: while it runs the request attaches to the
 * run, afterwards the broker answers it from its journal, because the local job's id is derived from session and opId.
 *
 * An answer is sent on the connection that is open when it is ready, and only there: a gateway that missed it asks again after the resume.
 */
import { type GatewayMessage, type Malformed, withholdUrls } from '@reelhost/bridge-protocol';
import { type Asked, answer, errorOf, problem, tooLarge } from './answers.js';
import { endJob, failure } from './endings.js';
import type { OpOutcome } from './inputs.js';
import type { Job, Progress, RunningOp, Session } from './state.js';
import { log, nextId, openLink, putJob, send, type Turn } from './turn.js';

/** The broker settles a timed-out op within 10 s of the timeout; the bridge answers itself a little later. */
const TIMEOUT_BACKSTOP_MS = 15_000;
/** `close` has nothing to compute: it is not waited for longer than this. */
const CLOSE_TIMEOUT_MS = 30_000;
/** At most four progress messages a second per op. */
export const PROGRESS_INTERVAL_MS = 250;
/** The local session of a finished job may take this long to go. */
const CLOSE_GRACE_MS = 8_000;
/** Longest stage and detail of a progress message, in characters. */
const STAGE_LENGTH = 256;
const DETAIL_LENGTH = 4_096;

type OpRequestMessage = Extract<GatewayMessage, { type: 'op.request' }>;
/** Starts, attaches to, or answers an op. */
export function opRequested(turn: Turn, message: OpRequestMessage): void {
  const { jobId, sessionId } = message;
  const { opId, op } = message.payload;
  const job = turn.state.jobs.get(jobId);
  if (job === undefined) {
    log(turn, 'warn', 'op.unheld', { jobId, opId });
    return;
  }
  const context: Asked = { jobId, sessionId, opId, op };
  if (job.ending !== null) {
    if (job.ending.closeOpId !== opId) return;
    answer(turn, job, context, { ok: true, resultText: '{}' });
    const after = turn.state.jobs.get(jobId) ?? job;
    putJob(turn, { ...after, ending: { ...job.ending, sendBy: turn.now } }, false);
    return;
  }
  if (job.session !== null && job.session.sessionId !== sessionId) {
    answer(turn, job, context, problem('op_expired', 'this job serves another session', false));
    return;
  }
  if (job.oversized.includes(opId)) {
    answer(turn, job, context, tooLarge(op));
    return;
  }
  if (job.op !== null) {
    if (job.op.opId !== opId) recall(turn, job, context);
    return;
  }
  start(turn, job, message);
}

/** Another op runs: an op of the past is still answered as it was answered then (Idempotency, Ops), a new one is refused. */
function recall(turn: Turn, job: Job, { opId, op }: Asked): void {
  const { jobId, epoch, session } = job;
  if (session?.state === 'open') {
    turn.effects.push({ kind: 'recallOp', jobId, epoch, localId: session.localId, opId, op });
  } else opRecalled(turn, { jobId, epoch, opId, op, outcome: null });
}

/** The broker said how an op of the past ended, or that it knows none of this id. */
export function opRecalled(
  turn: Turn,
  at: { jobId: string; epoch: number; opId: string; op: string; outcome: OpOutcome | null },
): void {
  const job = turn.state.jobs.get(at.jobId);
  if (job === undefined || job.epoch !== at.epoch || job.session === null || job.ending !== null) return;
  const { opId, op, outcome } = at;
  const asked = { jobId: at.jobId, sessionId: job.session.sessionId, opId, op };
  if (outcome === null) {
    const runs = job.op === null ? 'another op' : job.op.opId;
    answer(turn, job, asked, problem('op_in_flight', `${runs} is still running`, true));
  } else answer(turn, job, asked, outcome.ok ? outcome : { ok: false, error: errorOf(op, outcome) });
}

/** A request that could not be read, but names a held job and an op: it gets an answer rather than a timeout. */
export function malformedOp(turn: Turn, malformed: Malformed): void {
  const { jobId, sessionId, opId } = malformed;
  const job = jobId === undefined ? undefined : turn.state.jobs.get(jobId);
  if (malformed.type !== 'op.request' || job === undefined || sessionId === undefined || opId === undefined) return;
  if (job.ending !== null || job.op?.opId === opId) return;
  answer(turn, job, { jobId: job.jobId, sessionId, opId, op: '' }, problem('invalid_request', malformed.detail, false));
}

function start(turn: Turn, job: Job, message: OpRequestMessage): void {
  const { opId, op } = message.payload;
  const { text, secrets } = withholdUrls(message.argsText);
  const timeoutMs = timeoutOf(job, message);
  const running: RunningOp = {
    opId,
    op,
    argsText: text,
    secrets,
    timeoutMs,
    backstopAt: turn.now + timeoutMs + TIMEOUT_BACKSTOP_MS,
    state: job.session?.state === 'open' ? 'enqueued' : 'waiting',
    pending: null,
    progressSentAt: turn.now - PROGRESS_INTERVAL_MS,
  };
  log(turn, 'info', 'op.started', { jobId: job.jobId, opId, op: op.slice(0, 64), timeoutMs });
  if (job.session !== null) {
    const next = { ...job, op: running };
    putJob(turn, next, false);
    if (job.session.state === 'open') enqueue(turn, next, job.session, running);
    else openSession(turn, next, job.session.localId);
    return;
  }
  const session: Session = { sessionId: message.sessionId, localId: message.sessionId, state: 'opening', dir: '' };
  const next = { ...job, session, op: running };
  putJob(turn, next, true);
  openSession(turn, next, session.localId);
}

function timeoutOf(job: Job, message: OpRequestMessage): number {
  const own = message.payload.args['timeoutSec'];
  const limits = [job.timeoutSec, message.payload.timeoutSec ?? job.timeoutSec];
  if (typeof own === 'number' && own > 0) limits.push(own);
  const ms = Math.max(1, Math.round(Math.min(...limits) * 1_000));
  return message.payload.op === 'close' ? Math.min(ms, CLOSE_TIMEOUT_MS) : ms;
}

function openSession(turn: Turn, job: Job, localId: string): void {
  const { jobId, epoch, jobType } = job;
  turn.effects.push({ kind: 'openSession', jobId, epoch, localId, jobType });
}

function enqueue(turn: Turn, job: Job, session: Session, op: RunningOp): void {
  const { jobId, epoch, jobType } = job;
  // 0 is how an assign without a cap is kept.
  const limits = `{"maxOutputBytes":${job.maxOutputBytes === 0 ? 'null' : job.maxOutputBytes},"idleTimeoutSec":${job.idleTimeoutSec}}`;
  const sessionText = `{"id":${JSON.stringify(session.localId)},"dir":${JSON.stringify(session.dir)},"spec":${job.specText},"limits":${limits}}`;
  const argsText = `{"op":${JSON.stringify(op.op)},"args":${op.argsText},"session":${sessionText}}`;
  const { localId } = session;
  const { opId, secrets, timeoutMs } = op;
  turn.effects.push({ kind: 'enqueueOp', jobId, epoch, localId, jobType, opId, argsText, secrets, timeoutMs });
}

/** The broker made, or found, the session. */
export function sessionOpened(turn: Turn, at: { jobId: string; epoch: number; localId: string; dir: string }): void {
  const job = turn.state.jobs.get(at.jobId);
  if (job?.session?.localId !== at.localId || job.epoch !== at.epoch || job.ending !== null) return;
  const session: Session = { ...job.session, state: 'open', dir: at.dir };
  const op: RunningOp | null = job.op === null ? null : { ...job.op, state: 'enqueued' };
  const next = { ...job, session, op };
  putJob(turn, next, false);
  if (op !== null) enqueue(turn, next, session, op);
}

/** The broker will not have the session under this id. */
export function sessionRefused(
  turn: Turn,
  at: { jobId: string; epoch: number; localId: string; why: 'used' | 'lost' | 'full' | 'unavailable'; message: string },
): void {
  const job = turn.state.jobs.get(at.jobId);
  if (job?.session?.localId !== at.localId || job.epoch !== at.epoch || job.ending !== null) return;
  if (at.why === 'unavailable') return;
  if (at.why === 'full' && job.op !== null) {
    const asked = { jobId: job.jobId, sessionId: job.session.sessionId, opId: job.op.opId, op: job.op.op };
    putJob(turn, { ...job, op: null, lastOpAt: turn.now }, false);
    answer(turn, turn.state.jobs.get(job.jobId) ?? job, asked, problem('disk_full', at.message, true));
    return;
  }
  const second = `${job.session.sessionId}.e${job.epoch}`;
  if (at.why === 'used' && job.session.localId !== second && job.session.state === 'opening') {
    const next = { ...job, session: { ...job.session, localId: second } };
    putJob(turn, next, true);
    openSession(turn, next, second);
    return;
  }
  loseSession(turn, job, at.message);
}

/** The workspace is gone: the running op is told so, and the job with it. */
function loseSession(turn: Turn, job: Job, message: string): void {
  if (job.op !== null && job.session !== null) {
    const asked = { jobId: job.jobId, sessionId: job.session.sessionId, opId: job.op.opId, op: job.op.op };
    answer(turn, job, asked, problem('op_expired', message, false));
  }
  const terminal = failure('session_lost', message, true);
  endJob(turn, turn.state.jobs.get(job.jobId) ?? job, terminal, { answerMs: CLOSE_GRACE_MS, killMs: 0 });
}

/** The broker is back: whatever it may not know is told again; all of it may be said twice. */
export function resubmit(turn: Turn): void {
  for (const job of turn.state.jobs.values()) {
    if (job.ending !== null || job.session === null || job.op === null) continue;
    if (job.op.state === 'waiting') openSession(turn, job, job.session.localId);
    else enqueue(turn, job, job.session, job.op);
  }
}

/** An op ended in the broker. */
export function opSettled(
  turn: Turn,
  at: { jobId: string; epoch: number; opId: string; outcome: OpOutcome; conflict: boolean },
): void {
  const job = turn.state.jobs.get(at.jobId);
  if (job === undefined || job.epoch !== at.epoch || job.op?.opId !== at.opId || job.session === null) return;
  const { op, session } = job;
  if (at.conflict) log(turn, 'warn', 'op.conflict', { jobId: job.jobId, opId: op.opId });
  const outcome = op.op === 'close' ? closeOutcome(at.outcome) : at.outcome;
  log(turn, 'info', 'op.settled', { jobId: job.jobId, opId: op.opId, code: outcome.ok ? 'ok' : outcome.code });
  if (!outcome.ok && outcome.code === 'session_lost') {
    loseSession(turn, job, outcome.message);
    return;
  }
  if (op.pending !== null && mayTellProgress(turn)) tellProgress(turn, job, op, op.pending);
  const settled: Job = { ...job, op: null, lastOpAt: turn.now };
  putJob(turn, settled, false);
  const asked = { jobId: job.jobId, sessionId: session.sessionId, opId: op.opId, op: op.op };
  const isSent = answer(turn, settled, asked, outcome.ok ? outcome : { ok: false, error: errorOf(op.op, outcome) });
  if (op.op !== 'close' || !outcome.ok) return;
  endJob(
    turn,
    turn.state.jobs.get(job.jobId) ?? settled,
    { type: 'complete', outcome: 'succeeded' },
    {
      answerMs: isSent ? 0 : CLOSE_GRACE_MS,
      killMs: CLOSE_GRACE_MS,
      closeOpId: op.opId,
    },
  );
}

/** The bridge closes the session itself, so a `close` whose executor died or hung still closed it. */
function closeOutcome(outcome: OpOutcome): OpOutcome {
  if (outcome.ok) return outcome;
  const closesAnyway = ['executor_lost', 'timeout', 'interrupted_too_often'].includes(outcome.code);
  return closesAnyway ? { ok: true, resultText: '{}' } : outcome;
}

/** Answers ops that are over time by themselves when the broker did not. */
export function expireOps(turn: Turn): void {
  for (const job of turn.state.jobs.values()) {
    if (job.op === null || job.session === null || turn.now < job.op.backstopAt) continue;
    const { opId, op } = job.op;
    turn.effects.push({ kind: 'cancelOp', localId: job.session.localId, opId });
    const outcome: OpOutcome = { ok: false, code: 'timeout', message: 'the op took too long', retryable: true };
    opSettled(turn, { jobId: job.jobId, epoch: job.epoch, opId, outcome, conflict: false });
    log(turn, 'warn', 'op.backstop', { jobId: job.jobId, opId, op: op.slice(0, 64) });
  }
}

/** Keeps the latest progress of a running op. */
export function opProgressed(turn: Turn, at: { jobId: string; epoch: number; opId: string; progress: Progress }): void {
  const job = turn.state.jobs.get(at.jobId);
  if (job === undefined || job.epoch !== at.epoch || job.op?.opId !== at.opId) return;
  putJob(turn, { ...job, op: { ...job.op, pending: at.progress } }, false);
}

/**
 * Sends pending progress, at most four times a second per op and never into a socket that does not drain. What still waits when the op ends goes out right
 * before its answer ({@link opSettled}), so that the last one is not lost.
 */
export function flushProgress(turn: Turn): void {
  if (!mayTellProgress(turn)) return;
  for (const job of turn.state.jobs.values()) {
    const op = job.op;
    if (op?.pending == null || turn.now < op.progressSentAt + PROGRESS_INTERVAL_MS) continue;
    tellProgress(turn, job, op, op.pending);
  }
}

function mayTellProgress(turn: Turn): boolean {
  const link = openLink(turn.state);
  return link !== null && !link.pressed;
}

function tellProgress(turn: Turn, job: Job, op: RunningOp, { stage, percent, detail }: Progress): void {
  if (job.session === null) return;
  putJob(turn, { ...job, op: { ...op, pending: null, progressSentAt: turn.now } }, false);
  send(turn, {
    type: 'progress',
    id: nextId(turn),
    jobId: job.jobId,
    sessionId: job.session.sessionId,
    payload: {
      leaseEpoch: job.epoch,
      jobToken: job.token,
      opId: op.opId,
      stage: stage.slice(0, STAGE_LENGTH) || op.op.slice(0, STAGE_LENGTH),
      ...(percent === undefined || !(percent >= 0) ? {} : { percent: Math.min(100, percent) }),
      ...(detail === undefined ? {} : { detail: detail.slice(0, DETAIL_LENGTH) }),
    },
  });
}
