/**
 * Taking no new work: for good (a signal, or a pool worker whose gateway drains it), for now (the user paused), or on this connection (a desktop whose gateway
 * drains; at the gateway's deadline it takes its jobs to a new connection). Also the orderly reconnect when hello's capabilities are not true any more.
 *
 * Order of an end: drain and ready{0} at once → idle sessions end after a short while, running ones at the limit → terminal messages → their confirmation, if
 * it comes soon → bye → 1000 → exit 0. A second signal skips all waiting and exits 75.
 */
import { sameCapabilities } from './capabilities.js';
import { leave } from './connection.js';
import { endJob, failure } from './endings.js';
import { beat } from './leases.js';
import { backoffMs } from './redial.js';
import type { Drain, OpenLink } from './state.js';
import { holdsLease, log, nextId, openLink, send, type Turn, update, updateLink, usedSlots } from './turn.js';

/** The last heartbeat's answer is waited for this long before bye. */
const CONFIRM_MS = 3_000;
/** A drain without a connection gives up after this long: the leases end anyway. */
const OFFLINE_MS = 20_000;
/** After its limit, a drain ends within this time whatever hangs. */
const LAST_MS = 20_000;
/** The same for the fast path. */
const FAST_MS = 8_000;
/** A desktop stays away from a draining gateway for at least this long. */
const AWAY_MS = 5_000;
/** How long a change of capabilities must last before it is told: gains soon, losses (a restarting executor) later. */
const GAIN_MS = 1_000;
const LOSS_MS = 5_000;
/** Time between two reconnects of this kind. */
const RENEW_MS = 3_000;

/** SIGTERM, SIGINT, or a gateway that drains a pool worker. The second request is the fast path. */
export function stopRequested(turn: Turn, reason: string, limitMs: number): void {
  const { drain } = turn.state;
  if (drain === null) {
    log(turn, 'info', 'drain.began', { reason, limitMs });
    update(turn, {
      drain: { reason, since: turn.now, deadline: turn.now + limitMs, fast: false, finishBy: null },
    });
  } else if (!drain.fast) {
    log(turn, 'warn', 'drain.hurried', { reason });
    update(turn, { drain: { ...drain, deadline: turn.now, fast: true } });
  }
}

/** drain from the gateway. */
export function gatewayDrained(turn: Turn, reason: string, deadlineSec: number | undefined): void {
  log(turn, 'info', 'drain.requested', { reason: reason.slice(0, 120) });
  const leaveBy = deadlineSec === undefined ? Number.POSITIVE_INFINITY : turn.now + deadlineSec * 1_000;
  updateLink(turn, { gatewayDrains: true, leaveBy });
  if (turn.state.settings.kind !== 'pool' || turn.state.drain !== null) return;
  const limitMs = Math.min(turn.state.settings.drainLimitMs, (deadlineSec ?? Number.POSITIVE_INFINITY) * 1_000);
  stopRequested(turn, 'gateway', limitMs);
}

/** Moves a drain, a pause, or a due reconnect along. Runs at the end of every step. */
export function drainOn(turn: Turn): void {
  const { drain, paused } = turn.state;
  const link = openLink(turn.state);
  if (link !== null && !link.drainSent && (drain !== null || paused)) {
    const deadline = drain === null ? {} : { deadlineSec: Math.max(0, Math.ceil((drain.deadline - turn.now) / 1_000)) };
    send(turn, {
      type: 'drain',
      id: nextId(turn),
      payload: { reason: drain === null ? 'paused_by_user' : drain.reason, ...deadline },
    });
    updateLink(turn, { drainSent: true, announced: null });
  }
  if (drain !== null) endOn(turn, drain);
  else renew(turn);
}

function endOn(turn: Turn, drain: Drain): void {
  if (turn.state.ended) return;
  for (const job of turn.state.jobs.values()) {
    if (job.ending !== null || turn.now < abandonAt(turn, drain, job.op !== null, job.lastOpAt)) continue;
    const terminal = failure('shutting_down', 'this runner is shutting down', true);
    endJob(turn, job, terminal, drain.fast ? { answerMs: 1_500, killMs: 1_000 } : { answerMs: 9_500, killMs: 8_000 });
  }
  if (turn.now >= hardEndOf(drain)) {
    exit(turn, drain.fast ? 75 : 0);
    return;
  }
  // A session that would not stop when asked again does not hold up the end of the process; the broker goes on with it.
  const stuck = [...turn.state.teardowns.values()].filter((teardown) => teardown.tries > 0).length;
  const isBusy = usedSlots(turn.state) > stuck;
  const link = openLink(turn.state);
  if (link === null) {
    if (turn.state.link.phase === 'closing') return;
    const hopeless = drain.fast || turn.now >= drain.since + OFFLINE_MS || !holdsLease(turn.state, turn.now);
    if (hopeless && turn.state.teardowns.size === stuck) exit(turn, drain.fast ? 75 : 0);
    return;
  }
  if (isBusy) return;
  if (turn.state.jobs.size > 0) {
    if (drain.finishBy === null) {
      beat(turn);
      update(turn, { drain: { ...drain, finishBy: turn.now + CONFIRM_MS } });
    }
    if (turn.now < (turn.state.drain?.finishBy ?? 0)) return;
  }
  leave(turn, drain.reason, Number.POSITIVE_INFINITY);
}

function abandonAt(turn: Turn, drain: Drain, isRunning: boolean, lastOpAt: number): number {
  if (drain.fast || isRunning) return drain.deadline;
  return Math.min(drain.deadline, Math.max(lastOpAt, drain.since) + turn.state.settings.drainIdleMs);
}

/** When a drain ends although something hangs. */
export function hardEndOf(drain: Drain): number {
  return drain.deadline + (drain.fast ? FAST_MS : LAST_MS);
}

function exit(turn: Turn, code: number): void {
  update(turn, { ended: true });
  turn.effects.push({ kind: 'exit', code });
}

/** Called when the connection we closed for good is gone. */
export function endAfterClose(turn: Turn): void {
  const { drain, link, ended } = turn.state;
  if (drain !== null && !ended && link.phase === 'down' && link.redialAt === Number.POSITIVE_INFINITY) {
    exit(turn, drain.fast ? 75 : 0);
  }
}

function renew(turn: Turn): void {
  const link = openLink(turn.state);
  if (link === null) return;
  if (turn.now >= link.leaveBy && turn.state.jobs.size > 0) {
    // The leases outlive the connection: the next one, which another instance may serve, resumes the jobs.
    const waitMs = backoffMs(turn.state.attempt, turn.random, true);
    update(turn, { attempt: turn.state.attempt + 1 });
    leave(turn, 'drained', waitMs);
    return;
  }
  if (usedSlots(turn.state) > 0) return;
  if (turn.state.jobs.size > 0) {
    // Only messages that the gateway may not have read are left. Until it knows what is served here it gives no work: ask now, not at the next beat.
    if (turn.now >= renewAt(turn) && isUnconfirmed(turn.state, link)) beat(turn);
    return;
  }
  if (link.gatewayDrains) {
    const waitMs = AWAY_MS + backoffMs(turn.state.attempt + 3, turn.random, false);
    update(turn, { attempt: turn.state.attempt + 1 });
    leave(turn, 'drained', waitMs);
  } else if (link.drainSent && !turn.state.paused) {
    leave(turn, 'resumed', 0);
  } else if (turn.now >= renewAt(turn)) {
    log(turn, 'info', 'capabilities.changed', { jobTypes: turn.state.capabilities.jobTypes.join(' ') });
    leave(turn, 'capabilities_changed', 0);
  }
}

/** Whether a job's last word was sent on this connection, and no heartbeat is under way whose answer would prove its arrival. */
function isUnconfirmed(state: Turn['state'], link: OpenLink): boolean {
  return [...state.jobs.values()].some(({ ending }) => {
    const sent = ending?.sent;
    return sent?.generation === link.generation && link.asks.every((ask) => ask.seq < sent.seq);
  });
}

/** When an idle connection is renewed to tell changed capabilities; Infinity while they are as told. */
export function renewAt(turn: Pick<Turn, 'state'>): number {
  const link = openLink(turn.state);
  const { broker, capabilities, capabilitiesSince } = turn.state;
  if (link === null || broker !== 'ready' || sameCapabilities(link.told, capabilities)) return Number.POSITIVE_INFINITY;
  const isLoss = link.told.jobTypes.some((jobType) => !capabilities.jobTypes.includes(jobType));
  return Math.max(capabilitiesSince + (isLoss ? LOSS_MS : GAIN_MS), link.openedAt + RENEW_MS);
}
