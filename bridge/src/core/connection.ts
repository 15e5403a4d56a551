/**
 * The one connection and its phases: down → dialling → greeting → open → (closing) → down, or halted.
 *
 * Every event names the generation of its connection; those of an older one never get here (step.ts). At 45 s without an envelope from the gateway the socket is
 * destroyed, not closed: a frozen peer never answers a close. The back-off starts anew only after a welcome and a heartbeat that went round.
 */
import {
  compareVersions,
  MAX_PAYLOAD_BYTES,
  type Malformed,
  PROTOCOL_VERSION,
  sameMajor,
  type Welcome,
} from '@reelhost/bridge-protocol';
import { blameOversized } from './answers.js';
import { resumed, unsendEndings } from './endings.js';
import { beat, loseJob, resumableJobs } from './leases.js';
import { forgetOffers } from './offers.js';
import { backoffMs, REDIAL, verdictOf } from './redial.js';
import type { Link, OpenLink, Trouble } from './state.js';
import { holdsLease, log, nextId, openLink, send, type Turn, update, updateLink } from './turn.js';

/** A dial, upgrade included, may take this long; less while a lease runs out. */
const DIAL_MS = 10_000;
const DIAL_HELD_MS = 5_000;
/** The gateway answers a hello within this time. */
const WELCOME_MS = 10_000;
/** Our close is answered within this time, or the socket is destroyed. */
const CLOSE_MS = 2_000;
/** Longest heartbeat interval that keeps a 45 s lease alive. */
const MAX_HEARTBEAT_MS = 30_000;

/** Dials when it is time. */
export function dialWhenDue(turn: Turn): void {
  const { link, drain, ended } = turn.state;
  if (link.phase !== 'down' || turn.now < link.redialAt || ended) return;
  const isPointless = drain !== null && (drain.fast || !holdsLease(turn.state, turn.now));
  if (!isPointless) dial(turn);
}

function dial(turn: Turn): void {
  const generation = turn.state.generation + 1;
  const giveUpAt = turn.now + (holdsLease(turn.state, turn.now) ? DIAL_HELD_MS : DIAL_MS);
  update(turn, { generation, link: { phase: 'dialling', generation, giveUpAt } });
  turn.effects.push({ kind: 'dial', generation });
}

/** The WebSocket stands: say hello, with every job that can still be resumed. */
export function upgraded(turn: Turn, skewMs: number | null): void {
  const { link } = turn.state;
  if (link.phase !== 'dialling') return;
  const running = resumableJobs(turn.state, turn.now).map((job) => ({ jobId: job.jobId, leaseEpoch: job.epoch }));
  const { generation } = link;
  update(turn, {
    skewMs: skewMs ?? turn.state.skewMs,
    link: {
      phase: 'greeting',
      generation,
      giveUpAt: turn.now + WELCOME_MS,
      listed: new Map(running.map((job) => [job.jobId, job.leaseEpoch])),
      told: turn.state.capabilities,
      askedAt: turn.now,
    },
  });
  turn.effects.push({ kind: 'sendHello', generation, id: nextId(turn), running });
}

/** The gateway accepted us. */
export function welcomed(turn: Turn, welcome: Welcome): void {
  const { link } = turn.state;
  if (link.phase !== 'greeting') return;
  const { minAgentVersion } = welcome;
  const isTooOld =
    minAgentVersion !== undefined && compareVersions(turn.state.settings.agentVersion, minAgentVersion) < 0;
  const heartbeatMs = Math.min(welcome.heartbeatSec * 1_000, MAX_HEARTBEAT_MS);
  const open: OpenLink = {
    phase: 'open',
    generation: link.generation,
    openedAt: turn.now,
    lastHeardAt: turn.now,
    nextBeatAt: turn.now + heartbeatMs,
    heartbeatMs,
    deadAfterMs: welcome.deadAfterSec * 1_000,
    asks: [],
    seq: 0,
    announced: null,
    drainSent: false,
    gatewayDrains: false,
    leaveBy: Number.POSITIVE_INFINITY,
    proven: false,
    maxPayloadBytes: Math.min(MAX_PAYLOAD_BYTES, welcome.maxInlineBytes),
    pressed: false,
    told: link.told,
    runnerId: welcome.runnerId,
    gatewayInstance: welcome.gatewayInstance,
    updateRequired: isTooOld ? minAgentVersion : null,
  };
  update(turn, { link: open, trouble: null });
  log(turn, 'info', 'link.open', { runnerId: welcome.runnerId, gatewayInstance: welcome.gatewayInstance });
  if (!sameMajor(welcome.protocolVersion, PROTOCOL_VERSION)) {
    trouble(turn, 'incompatible', `the gateway speaks protocol ${welcome.protocolVersion}`);
    leave(turn, 'protocol_version', REDIAL.refusedMs[0]);
    return;
  }
  if (isTooOld) log(turn, 'error', 'update.required', { minAgentVersion });
  resumed(turn, link.listed, new Map(welcome.resumed.map((job) => [job.jobId, job.leaseEpoch])));
  if (link.listed.size > 0) beat(turn);
  // The heartbeat renews; ready follows in any case.
  updateLink(turn, { announced: null });
}

/** The dial failed, or the upgrade was refused. */
export function failed(turn: Turn, message: string, rateLimitedSec: number | null): void {
  log(turn, 'warn', 'link.failed', { reason: message });
  if (rateLimitedSec !== null) {
    trouble(turn, 'rate_limited', message);
    const waitMs = verdictOf(4429, { attempt: turn.state.attempt, random: turn.random, skewMs: null }).waitMs ?? 0;
    goDown(turn, Math.max(waitMs, rateLimitedSec * 1_000));
    return;
  }
  trouble(turn, 'unreachable', message);
  goDown(turn, null);
}

/** The connection is closed, by whoever. */
export function closed(turn: Turn, code: number, reason: string): void {
  const { link } = turn.state;
  log(turn, 'info', 'link.closed', { code, reason: reason.slice(0, 120), phase: link.phase });
  if (link.phase === 'closing') {
    update(turn, { link: { phase: 'down', redialAt: link.redialAt } });
    return;
  }
  if (code === 1009 && link.phase === 'open') blameOversized(turn, link.generation);
  const attempt = isProven(link) ? 0 : turn.state.attempt;
  const verdict = verdictOf(code, { attempt, random: turn.random, skewMs: turn.state.skewMs });
  trouble(turn, verdict.trouble.code, verdict.trouble.message);
  log(turn, 'warn', 'link.lost', { code, trouble: verdict.trouble.code, reason: verdict.trouble.message });
  if (verdict.dropJobs) for (const job of turn.state.jobs.values()) loseJob(turn, job, verdict.trouble.code);
  goDown(turn, verdict.waitMs);
  if (verdict.trouble.code === 'superseded') brake(turn);
}

/** Three take-overs in ten minutes: two machines have one identity, and dialling on would only throw the other one out. */
function brake(turn: Turn): void {
  const recent = turn.state.supersededAt.filter((at) => at > turn.now - REDIAL.conflictWindowMs);
  const supersededAt = [...recent, turn.now];
  update(turn, { supersededAt });
  if (supersededAt.length < REDIAL.conflictCount) return;
  update(turn, { link: { phase: 'halted' } });
  trouble(
    turn,
    'identity_conflict',
    'another machine uses the same identity (a copied disk or key file?): pair this one anew with `reelhost device init`, then restart',
  );
  log(turn, 'error', 'identity.conflict', { count: supersededAt.length });
}

/** Gives up on connections that do not come along, and on a gateway that went silent. `napped`: this process was not running for a while. */
export function expireLink(turn: Turn, napped: boolean): void {
  const { link } = turn.state;
  switch (link.phase) {
    case 'dialling':
    case 'greeting':
      if (turn.now < link.giveUpAt) return;
      turn.effects.push({ kind: 'destroyLink', generation: link.generation });
      trouble(turn, 'unreachable', link.phase === 'dialling' ? 'the gateway does not answer' : 'no welcome came');
      goDown(turn, napped ? 0 : null);
      return;
    case 'open':
      if (turn.now < link.lastHeardAt + link.deadAfterMs) {
        if (napped) updateLink(turn, { nextBeatAt: turn.now });
        return;
      }
      turn.effects.push({ kind: 'destroyLink', generation: link.generation });
      log(turn, 'warn', 'link.silent', { silentMs: turn.now - link.lastHeardAt, napped });
      trouble(turn, 'unreachable', 'the gateway went silent');
      goDown(turn, 0);
      if (napped) update(turn, { attempt: 0 });
      return;
    case 'closing':
      if (turn.now < link.giveUpAt) return;
      turn.effects.push({ kind: 'destroyLink', generation: link.generation });
      update(turn, { link: { phase: 'down', redialAt: link.redialAt } });
      return;
    case 'down':
      if (napped && (turn.state.trouble === null || turn.state.trouble.code === 'unreachable')) {
        update(turn, { attempt: 0, link: { phase: 'down', redialAt: Math.min(link.redialAt, turn.now) } });
      }
      return;
    case 'halted':
      return;
  }
}

/** Says bye, closes with 1000 and dials again after `waitMs`; Infinity: never. */
export function leave(turn: Turn, reason: string, waitMs: number): void {
  const link = openLink(turn.state);
  if (link === null) return;
  send(turn, { type: 'bye', id: nextId(turn), payload: { reason } });
  close(turn, link.generation, 1000, reason, waitMs);
}

/** A message that the specification answers with a close. */
export function refuse(turn: Turn, malformed: Malformed): void {
  const { link } = turn.state;
  log(turn, 'warn', 'message.malformed', {
    type: malformed.type ?? '',
    reason: malformed.reason,
    detail: malformed.detail,
  });
  if (malformed.closeCode === undefined || (link.phase !== 'open' && link.phase !== 'greeting')) return;
  const waitMs = backoffMs(turn.state.attempt, turn.random, holdsLease(turn.state, turn.now));
  close(turn, link.generation, malformed.closeCode, malformed.reason, waitMs);
  update(turn, { attempt: turn.state.attempt + 1 });
}

function close(turn: Turn, generation: number, code: number, reason: string, waitMs: number): void {
  turn.effects.push({ kind: 'closeLink', generation, code, reason });
  detach(turn);
  update(turn, {
    link: { phase: 'closing', generation, giveUpAt: turn.now + CLOSE_MS, redialAt: turn.now + waitMs },
  });
}

/** Every way a connection is lost ends here. Null: the ordinary back-off. */
function goDown(turn: Turn, waitMs: number | null): void {
  const attempt = isProven(turn.state.link) ? 0 : turn.state.attempt;
  detach(turn);
  const wait = waitMs ?? backoffMs(attempt, turn.random, holdsLease(turn.state, turn.now));
  update(turn, { attempt: attempt + 1, link: { phase: 'down', redialAt: turn.now + wait } });
  log(turn, 'info', 'link.redial', { waitMs: wait, attempt: attempt + 1 });
}

/** What was agreed on the connection is void. */
function detach(turn: Turn): void {
  forgetOffers(turn);
  unsendEndings(turn);
}

function isProven(link: Link): boolean {
  return link.phase === 'open' && link.proven;
}

function trouble(turn: Turn, code: Trouble['code'], message: string): void {
  const since = turn.state.trouble?.code === code ? turn.state.trouble.since : turn.now;
  update(turn, { trouble: { code, message, since } });
}
