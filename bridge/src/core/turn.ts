/**
 * One step in the making: the state so far, what must be written down, and what is to be done afterwards.
 *
 * The driver first commits all records of a step in one transaction and only then carries out its effects, in order (durable before visible).
 * A turn has a state of its own to change; what the state holds (jobs, the link …) is never changed in place.
 */
import { type RunnerDraft, type Written, writeOutbound } from '@reelhost/bridge-protocol';
import type { BridgeState, Job, OpenLink, Teardown, Terminal } from './state.js';

/** What survives a restart. A job row carries its unsent or unconfirmed terminal message. */
export type JournalRecord =
  | { readonly kind: 'putJob'; readonly job: Job }
  | { readonly kind: 'deleteJob'; readonly jobId: string };

/** What a log line says; never a payload, a token or a URL. */
export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

/** What the driver must do. */
export type Effect =
  | { readonly kind: 'dial'; readonly generation: number }
  | {
      readonly kind: 'sendHello';
      readonly generation: number;
      readonly id: string;
      readonly running: readonly { readonly jobId: string; readonly leaseEpoch: number }[];
    }
  | { readonly kind: 'send'; readonly generation: number; readonly text: string }
  | { readonly kind: 'closeLink'; readonly generation: number; readonly code: number; readonly reason: string }
  | { readonly kind: 'destroyLink'; readonly generation: number }
  | { readonly kind: 'probeBroker'; readonly jobId: string; readonly epoch: number }
  | {
      readonly kind: 'openSession';
      readonly jobId: string;
      readonly epoch: number;
      readonly localId: string;
      readonly jobType: string;
    }
  | { readonly kind: 'closeSession'; readonly localId: string; readonly graceMs: number }
  | {
      readonly kind: 'enqueueOp';
      readonly jobId: string;
      readonly epoch: number;
      readonly localId: string;
      readonly jobType: string;
      readonly opId: string;
      readonly argsText: string;
      readonly secrets: Readonly<Record<string, string>>;
      readonly timeoutMs: number;
    }
  | { readonly kind: 'cancelOp'; readonly localId: string; readonly opId: string }
  /** Asks the broker how an op of the past ended, without starting anything. */
  | {
      readonly kind: 'recallOp';
      readonly jobId: string;
      readonly epoch: number;
      readonly localId: string;
      readonly opId: string;
      readonly op: string;
    }
  | { readonly kind: 'exit'; readonly code: number }
  | {
      readonly kind: 'log';
      readonly level: 'debug' | 'info' | 'warn' | 'error';
      readonly event: string;
      readonly fields: LogFields;
    };

/** See the head of the file. `random` is one number in [0, 1) for this step. */
export type Turn = {
  readonly state: BridgeState;
  readonly now: number;
  readonly random: number;
  readonly records: JournalRecord[];
  readonly effects: Effect[];
};

/** Replaces parts of the state. In place: a turn does this a dozen times, and a copy of a state costs more than all the deciding. */
export function update(turn: Turn, change: Partial<BridgeState>): void {
  Object.assign(turn.state, change);
}

/** Adds a log line. */
export function log(
  turn: Turn,
  level: 'debug' | 'info' | 'warn' | 'error',
  event: string,
  fields: LogFields = {},
): void {
  turn.effects.push({ kind: 'log', level, event, fields });
}

/** Holds the job in memory; `durable` also writes it down before anything else happens. */
export function putJob(turn: Turn, job: Job, durable: boolean): void {
  update(turn, { jobs: new Map(turn.state.jobs).set(job.jobId, job) });
  if (durable) turn.records.push({ kind: 'putJob', job });
}

/** Forgets the job for good. */
export function dropJob(turn: Turn, jobId: string): void {
  const jobs = new Map(turn.state.jobs);
  if (!jobs.delete(jobId)) return;
  update(turn, { jobs });
  turn.records.push({ kind: 'deleteJob', jobId });
}

/** The welcomed connection, or null. */
export function openLink(state: BridgeState): OpenLink | null {
  return state.link.phase === 'open' ? state.link : null;
}

/** Changes the open connection; does nothing when there is none. */
export function updateLink(turn: Turn, change: Partial<OpenLink>): void {
  if (turn.state.link.phase === 'open') update(turn, { link: { ...turn.state.link, ...change } });
}

/** A message id nobody else uses: the random UUID of this process with a counter in its last twelve digits. */
export function nextId(turn: Turn): string {
  const messages = turn.state.messages + 1;
  update(turn, { messages });
  return `${turn.state.settings.instance.slice(0, 24)}${messages.toString(16).padStart(12, '0').slice(-12)}`;
}

/**
 * Sends on the open connection. A message that breaks the specification is not sent but reported to the caller, which decides what to say instead.
 * Null: there is no welcomed connection.
 */
export function send(turn: Turn, draft: RunnerDraft): Written | null {
  const link = openLink(turn.state);
  if (link === null) return null;
  const written = writeOutbound(draft, 'runnerToGateway');
  if (written.ok && written.payloadBytes > link.maxPayloadBytes) {
    const detail = `payload: the gateway takes ${link.maxPayloadBytes} bytes`;
    return { ok: false, reason: 'payload_too_large', detail, payloadBytes: written.payloadBytes };
  }
  if (!written.ok) {
    log(turn, 'error', 'message.refused', { type: draft.type, messageId: draft.id, detail: written.detail });
    return written;
  }
  updateLink(turn, { seq: link.seq + 1 });
  turn.effects.push({ kind: 'send', generation: link.generation, text: written.text });
  return written;
}

/** Sends the terminal message of a job. */
export function sendTerminal(turn: Turn, job: Job, terminal: Terminal): void {
  const fence = { leaseEpoch: job.epoch, jobToken: job.token };
  const ids = {
    id: nextId(turn),
    jobId: job.jobId,
    ...(job.session === null ? {} : { sessionId: job.session.sessionId }),
  };
  switch (terminal.type) {
    case 'complete':
      send(turn, { type: 'complete', ...ids, payload: { ...fence, outcome: terminal.outcome } });
      return;
    case 'fail':
      send(turn, {
        type: 'fail',
        ...ids,
        payload: {
          ...fence,
          class: terminal.failClass,
          code: terminal.code,
          message: terminal.message,
          retryable: terminal.retryable,
        },
      });
      return;
  }
}

/** Begins to take a local session down: its running op is cancelled, its directory removed. Asking twice keeps the first. */
export function tearDown(turn: Turn, jobId: string, localId: string, graceMs: number): void {
  const known = turn.state.teardowns.get(localId);
  if (known !== undefined && known.graceMs <= graceMs) return;
  const teardown: Teardown = { localId, jobId, graceMs, tries: 0, retryAt: turn.now + graceMs + TEARDOWN_RETRY_MS };
  update(turn, { teardowns: new Map(turn.state.teardowns).set(localId, teardown) });
  turn.effects.push({ kind: 'closeSession', localId, graceMs });
}

/** A teardown whose answer stays away, or says that work still runs, is asked again after this long. */
export const TEARDOWN_RETRY_MS = 5_000;

/** True when something of this job still runs here. */
export function isTearingDown(state: BridgeState, jobId: string): boolean {
  for (const teardown of state.teardowns.values()) if (teardown.jobId === jobId) return true;
  return false;
}

/** Jobs, offers and dying sessions each hold a slot: it is free when nothing runs in it, not when it was told so. */
export function usedSlots(state: BridgeState): number {
  let used = state.offers.size + state.teardowns.size;
  for (const job of state.jobs.values()) {
    const owes = job.ending !== null && job.ending.terminal !== null && job.ending.sent === null;
    if (job.ending === null || (owes && !isTearingDown(state, job.jobId))) used += 1;
  }
  return used;
}

/** What ready and heartbeat announce: 0 whenever an assign would be rejected anyway. */
export function freeSlots(state: BridgeState): number {
  const link = openLink(state);
  const closed =
    state.drain !== null ||
    state.paused ||
    state.broker !== 'ready' ||
    state.capabilities.jobTypes.length === 0 ||
    (link !== null && (link.gatewayDrains || link.updateRequired !== null));
  return closed ? 0 : Math.max(0, state.settings.slots - usedSlots(state));
}

/** True while a lease that can still be resumed is held. */
export function holdsLease(state: BridgeState, now: number): boolean {
  for (const job of state.jobs.values()) if (job.leaseUntil > now) return true;
  return false;
}
