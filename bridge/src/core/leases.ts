/**
 * Heartbeats and what they prove. A lease is trusted until the time of asking plus 45 s; a job whose trust ended is stopped and nothing more is sent for
 * it. A terminal message is settled when the answer to a heartbeat that was sent after it comes back on the same connection: the gateway reads in order.
 */
import { type GatewayHeartbeat, LEASE_SEC } from '@reelhost/bridge-protocol';
import type { Ask, BridgeState, Job } from './state.js';
import { dropJob, freeSlots, log, nextId, openLink, putJob, send, type Turn, tearDown, updateLink } from './turn.js';

/** Life of a lease in ms (Job lifecycle, transition 2 and 4). */
export const LEASE_MS = LEASE_SEC * 1_000;

/** How long the local work of a lost job may take to stop: there is nobody to be polite to. */
const LOST_GRACE_MS = 2_000;

/** The jobs a heartbeat lists: held, and their terminal message not on its way. */
export function listedJobs(state: BridgeState, now: number): Job[] {
  return [...state.jobs.values()].filter(
    (job) =>
      job.leaseUntil > now && (job.ending === null || (job.ending.terminal !== null && job.ending.sent === null)),
  );
}

/** The jobs hello lists: also those whose terminal message may not have arrived. */
export function resumableJobs(state: BridgeState, now: number): Job[] {
  return [...state.jobs.values()].filter(
    (job) => job.leaseUntil > now && (job.ending === null || job.ending.terminal !== null),
  );
}

/** Stops a job that is not ours any more: nothing with its epoch leaves this process again. */
export function loseJob(turn: Turn, job: Job, why: string): void {
  log(turn, 'warn', 'lease.lost', { jobId: job.jobId, epoch: job.epoch, why });
  dropJob(turn, job.jobId);
  if (job.session !== null) tearDown(turn, job.jobId, job.session.localId, LOST_GRACE_MS);
}

/** Drops every job whose trust has ended. Runs before anything else in a step, so that after a sleep nothing old is sent first. */
export function expireLeases(turn: Turn): void {
  for (const job of turn.state.jobs.values()) if (job.leaseUntil <= turn.now) loseJob(turn, job, 'expired');
}

/** Sends a heartbeat and remembers what it asked. */
export function beat(turn: Turn): void {
  const link = openLink(turn.state);
  if (link === null) return;
  const jobs = listedJobs(turn.state, turn.now);
  const free = freeSlots(turn.state);
  send(turn, {
    type: 'heartbeat',
    id: nextId(turn),
    payload: { freeSlots: free, running: jobs.map((job) => ({ jobId: job.jobId, leaseEpoch: job.epoch })) },
  });
  const sent = openLink(turn.state);
  if (sent === null) return;
  const ask: Ask = { at: turn.now, seq: sent.seq, epochs: new Map(jobs.map((job) => [job.jobId, job.epoch])) };
  const asks = [...sent.asks, ask].filter((old) => old.at > turn.now - LEASE_MS);
  updateLink(turn, { asks, announced: free, nextBeatAt: turn.now + sent.heartbeatMs });
}

/**
 * Reads the gateway's answer. It belongs to the oldest heartbeat without one: taking it for a newer one would trust a lease for too long. An answer nobody asked
 * for renews nothing, but its `ok: false` is obeyed.
 */
export function answered(turn: Turn, answer: GatewayHeartbeat): void {
  const link = openLink(turn.state);
  if (link === null) return;
  const [ask, ...asks] = link.asks;
  updateLink(turn, { asks, proven: link.proven || ask !== undefined });
  const refused = new Set(answer.leases.filter((lease) => !lease.ok).map((lease) => lease.jobId));
  for (const job of turn.state.jobs.values()) {
    const askedEpoch = ask?.epochs.get(job.jobId);
    if (refused.has(job.jobId)) {
      if (askedEpoch === undefined || askedEpoch === job.epoch) loseJob(turn, job, 'refused');
      continue;
    }
    if (ask === undefined) continue;
    if (job.ending?.sent?.generation === link.generation && job.ending.sent.seq < ask.seq) {
      log(turn, 'info', 'job.delivered', { jobId: job.jobId, epoch: job.epoch });
      dropJob(turn, job.jobId);
      continue;
    }
    const arrived = job.lastResponse?.generation === link.generation && job.lastResponse.seq < ask.seq;
    const leaseUntil = askedEpoch === job.epoch ? Math.max(job.leaseUntil, ask.at + LEASE_MS) : job.leaseUntil;
    if (leaseUntil !== job.leaseUntil || arrived) {
      putJob(
        turn,
        { ...job, leaseUntil, lastResponse: arrived ? null : job.lastResponse },
        leaseUntil !== job.leaseUntil,
      );
    }
  }
}
