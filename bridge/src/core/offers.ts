/**
 * assign → accept or reject. An assign is answered within its 10 s in every case: reasons to reject are looked for at once, and before an accept
 * the broker proves with one round trip that it is alive (a frozen broker must not collect jobs). The job is written down before accept leaves.
 */
import {
  ASSIGN_ANSWER_SEC,
  type Assign,
  DEFAULT_IDLE_TIMEOUT_SEC,
  type GatewayMessage,
  type RejectReason,
} from '@reelhost/bridge-protocol';
import { misfitOf } from './capabilities.js';
import { LEASE_MS, loseJob } from './leases.js';
import type { Job, Offer } from './state.js';
import { freeSlots, log, openLink, putJob, send, type Turn, update, updateLink } from './turn.js';

/** The broker has this long to prove itself; well inside the 10 s an assign has (Job lifecycle, transition 3). */
const PROBE_MS = 6_000;
/** After this long the gateway has taken the silence for a reject and may have raised the epoch: nothing is said any more. */
const ANSWER_MS = ASSIGN_ANSWER_SEC * 1_000;

type AssignMessage = Extract<GatewayMessage, { type: 'assign' }>;

/** Answers an assign, or begins to. */
export function assigned(turn: Turn, message: AssignMessage): void {
  const link = openLink(turn.state);
  if (link === null) return;
  const { jobId, payload } = message;
  const job = jobOf(message, turn.now);
  const held = turn.state.jobs.get(jobId);
  const offered = turn.state.offers.get(jobId);
  const known = held ?? offered?.job;
  if (known !== undefined && payload.leaseEpoch < known.epoch) {
    log(turn, 'warn', 'assign.stale', { jobId, epoch: payload.leaseEpoch, held: known.epoch });
    return;
  }
  if (held !== undefined && payload.leaseEpoch === held.epoch) {
    if (held.ending === null) accept(turn, message.id, held);
    return;
  }
  if (offered !== undefined && payload.leaseEpoch === offered.job.epoch) return;
  if (held !== undefined) loseJob(turn, held, 'replaced');
  if (offered !== undefined) withdraw(turn, jobId);
  const refusal = refusalOf(turn, payload, known !== undefined);
  if (refusal !== null) {
    reject(turn, message.id, job, refusal.reason, refusal.message);
    return;
  }
  const offer: Offer = { assignId: message.id, generation: link.generation, answerBy: turn.now + PROBE_MS, job };
  update(turn, { offers: new Map(turn.state.offers).set(jobId, offer) });
  expectSlots(turn, -1);
  turn.effects.push({ kind: 'probeBroker', jobId, epoch: job.epoch });
}

/** The broker answered the probe, or will not. */
export function probed(turn: Turn, jobId: string, epoch: number, alive: boolean): void {
  const offer = turn.state.offers.get(jobId);
  if (offer === undefined || offer.job.epoch !== epoch) return;
  withdraw(turn, jobId);
  const link = openLink(turn.state);
  if (link === null || link.generation !== offer.generation) return;
  if (turn.now >= offer.job.acceptedAt + ANSWER_MS) {
    log(turn, 'warn', 'assign.late', { jobId, epoch });
    expectSlots(turn, 1);
    return;
  }
  const refusal = alive ? stopReasonOf(turn) : { reason: 'busy' as const, message: 'the local broker does not answer' };
  if (refusal !== null) {
    expectSlots(turn, 1);
    reject(turn, offer.assignId, offer.job, refusal.reason, refusal.message);
    return;
  }
  putJob(turn, offer.job, true);
  accept(turn, offer.assignId, offer.job);
  log(turn, 'info', 'job.accepted', { jobId, epoch, jobType: offer.job.jobType });
}

/** Rejects the offers whose probe took too long. */
export function expireOffers(turn: Turn): void {
  for (const offer of turn.state.offers.values()) {
    if (turn.now >= offer.answerBy) probed(turn, offer.job.jobId, offer.job.epoch, false);
  }
}

/** The connection is gone: its offers are nobody's now. */
export function forgetOffers(turn: Turn): void {
  if (turn.state.offers.size > 0) update(turn, { offers: new Map() });
}

function withdraw(turn: Turn, jobId: string): void {
  const offers = new Map(turn.state.offers);
  offers.delete(jobId);
  update(turn, { offers });
}

type Refusal = { readonly reason: RejectReason; readonly message: string };

/** Reasons that have nothing to do with the job. */
function stopReasonOf(turn: Turn): Refusal | null {
  const link = openLink(turn.state);
  if (turn.state.drain !== null) return { reason: 'shutting_down', message: 'this runner is shutting down' };
  if (link?.gatewayDrains === true) return { reason: 'shutting_down', message: 'the gateway asked for a drain' };
  if (turn.state.paused) return { reason: 'paused_by_user', message: 'paused by the user' };
  if (link !== null && link.updateRequired !== null) {
    return { reason: 'capability_mismatch', message: `this runner is older than ${link.updateRequired}` };
  }
  if (turn.state.broker !== 'ready') return { reason: 'busy', message: 'the local broker is not available' };
  return null;
}

/** `replaces`: the job is held with a lower epoch, and its new assignment takes over its slot while the old work is still being stopped. */
function refusalOf(turn: Turn, payload: Assign, replaces: boolean): Refusal | null {
  const stop = stopReasonOf(turn);
  if (stop !== null) return stop;
  const misfit = misfitOf(turn.state.capabilities, {
    jobType: payload.jobType,
    runtimeImageDigest: payload.requires.runtimeImageDigest ?? null,
    fontsetVersion: payload.requires.fontsetVersion ?? null,
    maxOutputBytes: payload.limits.maxOutputBytes ?? 0,
  });
  if (misfit !== null) return misfit;
  return replaces || freeSlots(turn.state) > 0 ? null : { reason: 'busy', message: 'no free slot' };
}

function accept(turn: Turn, assignId: string, job: Job): void {
  const fence = { leaseEpoch: job.epoch, jobToken: job.token };
  send(turn, { type: 'accept', id: assignId, jobId: job.jobId, payload: fence });
}

/**
 * The gateway counts along: an assign takes a slot, a reject gives it back. So neither needs a ready of its own, and a rejected job is not asked for again
 * at once.
 */
function expectSlots(turn: Turn, change: number): void {
  const link = openLink(turn.state);
  if (link !== null && link.announced !== null) updateLink(turn, { announced: Math.max(0, link.announced + change) });
}

function reject(turn: Turn, assignId: string, job: Job, reason: RejectReason, message: string): void {
  log(turn, 'info', 'job.rejected', { jobId: job.jobId, epoch: job.epoch, reason });
  const fence = { leaseEpoch: job.epoch, jobToken: job.token };
  send(turn, { type: 'reject', id: assignId, jobId: job.jobId, payload: { ...fence, reason, message } });
}

function jobOf(message: AssignMessage, now: number): Job {
  const { payload } = message;
  return {
    jobId: message.jobId,
    epoch: payload.leaseEpoch,
    token: payload.jobToken,
    jobType: payload.jobType,
    attempt: payload.attempt,
    timeoutSec: payload.timeoutSec,
    idleTimeoutSec: payload.limits.idleTimeoutSec ?? DEFAULT_IDLE_TIMEOUT_SEC,
    maxOutputBytes: payload.limits.maxOutputBytes ?? 0,
    specText: message.specText,
    acceptedAt: now,
    leaseUntil: now + LEASE_MS,
    lastOpAt: now,
    session: null,
    op: null,
    ending: null,
    lastResponse: null,
    oversized: [],
  };
}
