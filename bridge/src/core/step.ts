/**
 * The one function that decides. Order of a step: what time alone has ended (leases first, then a silent connection) → the input → what follows from
 * both (messages that are due, drain, free slots, dialling). So after a sleep nothing stale is acted on before the stale things are gone.
 */
import type { GatewayMessage } from '@reelhost/bridge-protocol';
import { sameCapabilities } from './capabilities.js';
import * as connection from './connection.js';
import * as draining from './draining.js';
import * as endings from './endings.js';
import type { Input } from './inputs.js';
import * as leases from './leases.js';
import * as offers from './offers.js';
import * as ops from './ops.js';
import type { BridgeState } from './state.js';
import {
  type Effect,
  freeSlots,
  type JournalRecord,
  log,
  nextId,
  openLink,
  send,
  type Turn,
  update,
  updateLink,
} from './turn.js';

/** The driver steps at least this often, so a longer gap means that the process, or the computer, did not run. */
export const MAX_STEP_GAP_MS = 5_000;
const NAP_MS = 10_000;

/** What came out of a step: commit the records, then carry out the effects in order. */
export type Step = {
  readonly state: BridgeState;
  readonly records: readonly JournalRecord[];
  readonly effects: readonly Effect[];
};

/** See the head of the file. `now` never goes back; `random` is in [0, 1). */
export function step(state: BridgeState, input: Input, now: number, random: number): Step {
  const turn: Turn = { state: { ...state }, now, random, records: [], effects: [] };
  const napped = now - state.lastStepAt > NAP_MS;
  if (napped) log(turn, 'warn', 'clock.napped', { ms: Math.round(now - state.lastStepAt) });
  update(turn, { lastStepAt: now });
  leases.expireLeases(turn);
  connection.expireLink(turn, napped);
  offers.expireOffers(turn);
  if (!isStale(turn.state, input)) apply(turn, input);
  conclude(turn);
  return { state: turn.state, records: turn.records, effects: turn.effects };
}

/** Events of a connection that is not the current one change nothing. */
function isStale(state: BridgeState, input: Input): boolean {
  if (!('generation' in input)) return false;
  const { link } = state;
  return link.phase === 'down' || link.phase === 'halted' || link.generation !== input.generation;
}

function apply(turn: Turn, input: Input): void {
  switch (input.kind) {
    case 'timePassed':
      return;
    case 'linkUpgraded':
      connection.upgraded(turn, input.skewMs);
      return;
    case 'linkFailed':
      connection.failed(turn, input.message, input.rateLimitedSec);
      return;
    case 'linkClosed':
      connection.closed(turn, input.code, input.reason);
      return;
    case 'linkPressed':
      updateLink(turn, { pressed: input.pressed });
      return;
    case 'messageReceived':
      received(turn, input.message);
      return;
    case 'unknownReceived':
      log(turn, 'debug', 'message.unknown', { type: input.type.slice(0, 64) });
      updateLink(turn, { lastHeardAt: turn.now });
      return;
    case 'malformedReceived':
      ops.malformedOp(turn, input.malformed);
      connection.refuse(turn, input.malformed);
      return;
    case 'brokerConnected':
      log(turn, 'info', 'broker.connected');
      update(turn, { broker: 'ready' });
      endings.retryTeardowns(turn, true);
      ops.resubmit(turn);
      return;
    case 'brokerLost':
      if (turn.state.broker !== 'absent') log(turn, 'warn', 'broker.lost');
      update(turn, { broker: 'absent' });
      return;
    case 'brokerWedged':
      log(turn, 'error', input.isFull ? 'broker.full' : 'broker.wedged');
      update(turn, { broker: input.isFull ? 'full' : 'wedged' });
      return;
    case 'registryChanged':
      registryChanged(turn, input.capabilities);
      return;
    case 'brokerProbed':
      offers.probed(turn, input.jobId, input.epoch, input.alive);
      return;
    case 'sessionOpened':
      ops.sessionOpened(turn, input);
      return;
    case 'sessionRefused':
      ops.sessionRefused(turn, input);
      return;
    case 'sessionClosed':
      endings.sessionClosed(turn, input.localId, input.gone);
      return;
    case 'opProgressed':
      ops.opProgressed(turn, input);
      return;
    case 'opSettled':
      ops.opSettled(turn, input);
      return;
    case 'opRecalled':
      ops.opRecalled(turn, input);
      return;
    case 'pauseChanged':
      if (turn.state.paused !== input.paused) log(turn, 'info', input.paused ? 'bridge.paused' : 'bridge.resumed');
      update(turn, { paused: input.paused });
      return;
    case 'stopRequested':
      draining.stopRequested(turn, input.reason, turn.state.settings.drainLimitMs);
      return;
  }
}

function registryChanged(turn: Turn, capabilities: BridgeState['capabilities']): void {
  if (!sameCapabilities(turn.state.capabilities, capabilities)) {
    update(turn, { capabilities, capabilitiesSince: turn.now });
  }
  const { link, generation } = turn.state;
  if (generation === 0 && link.phase === 'down' && capabilities.jobTypes.length > 0) {
    update(turn, { link: { phase: 'down', redialAt: turn.now } });
  }
}

function received(turn: Turn, message: GatewayMessage): void {
  const { link } = turn.state;
  if (link.phase === 'greeting') {
    if (message.type === 'welcome') connection.welcomed(turn, message.payload);
    else log(turn, 'warn', 'message.early', { type: message.type });
    return;
  }
  updateLink(turn, { lastHeardAt: turn.now });
  switch (message.type) {
    case 'welcome':
      log(turn, 'warn', 'message.unexpected', { type: message.type });
      return;
    case 'heartbeat':
      leases.answered(turn, message.payload);
      return;
    case 'assign':
      offers.assigned(turn, message);
      return;
    case 'op.request':
      ops.opRequested(turn, message);
      return;
    case 'cancel':
      endings.cancelled(turn, message.jobId, message.payload);
      return;
    case 'drain':
      draining.gatewayDrained(turn, message.payload.reason, message.payload.deadlineSec);
      return;
    case 'bye':
      log(turn, 'info', 'gateway.bye', { reason: message.payload.reason.slice(0, 120) });
      return;
  }
}

function conclude(turn: Turn): void {
  ops.expireOps(turn);
  endings.endOverdue(turn);
  endings.retryTeardowns(turn, false);
  endings.deliverEndings(turn);
  ops.flushProgress(turn);
  const link = openLink(turn.state);
  if (link !== null && turn.now >= link.nextBeatAt) leases.beat(turn);
  draining.drainOn(turn);
  endings.deliverEndings(turn);
  announce(turn);
  draining.endAfterClose(turn);
  connection.dialWhenDue(turn);
}

/** ready goes out whenever the gateway's idea of our free slots would be wrong. */
function announce(turn: Turn): void {
  const link = openLink(turn.state);
  const free = freeSlots(turn.state);
  if (link === null || link.announced === free) return;
  send(turn, { type: 'ready', id: nextId(turn), payload: { freeSlots: free } });
  updateLink(turn, { announced: free });
}
