/**
 * Writes one message. Strict: a field the specification does not name, a value outside the sets we may send, a missing id, or a payload over 4 MiB
 * is refused here and never reaches the wire. Errors are answers, not exceptions: the sender must decide what to say instead.
 */
import type { z } from 'zod';
import { isId, isName } from './fields.js';
import * as fromGateway from './gateway-messages.js';
import { issueText } from './inbound.js';
import { MAX_PAYLOAD_BYTES } from './limits.js';
import { type Direction, ENVELOPE_VERSION, MESSAGE_SCOPES, type MessageType } from './names.js';
import { isJsonObject, type JsonObject, RawJson, stringifyWithRaw, utf8Bytes } from './raw-json.js';
import * as fromRunner from './runner-messages.js';

type Draft<T extends MessageType, P> = { readonly type: T; readonly id: string; readonly payload: P };
type ForJob = { readonly jobId: string; readonly sessionId?: string | undefined };
type ForSession = { readonly jobId: string; readonly sessionId: string };

/** What a runner may write. Each needs a fresh id, but accept and reject carry the id of the assign they answer. */
export type RunnerDraft =
  | Draft<'hello', fromRunner.HelloOut>
  | Draft<'heartbeat', fromRunner.RunnerHeartbeat>
  | Draft<'ready', fromRunner.Ready>
  | (Draft<'accept', fromRunner.Accept> & ForJob)
  | (Draft<'reject', fromRunner.RejectOut> & ForJob)
  | (Draft<'progress', fromRunner.ProgressOut> & ForJob)
  | (Draft<'op.response', fromRunner.OpResponseOut> & ForSession)
  | (Draft<'complete', fromRunner.CompleteOut> & ForJob)
  | (Draft<'fail', fromRunner.FailOut> & ForJob)
  | Draft<'drain', fromRunner.DrainOut>
  | Draft<'bye', fromRunner.Bye>;

/** What a gateway may write. */
export type GatewayDraft =
  | Draft<'welcome', fromGateway.WelcomeOut>
  | Draft<'heartbeat', fromGateway.GatewayHeartbeat>
  | (Draft<'assign', fromGateway.AssignOut> & ForJob)
  | (Draft<'op.request', fromGateway.OpRequestOut> & ForSession)
  | (Draft<'cancel', fromGateway.CancelOut> & ForJob)
  | Draft<'drain', fromRunner.DrainOut>
  | Draft<'bye', fromRunner.Bye>;

/** The drafts of one direction. */
export type DraftOf<D extends Direction> = D extends 'gatewayToRunner' ? GatewayDraft : RunnerDraft;

/** The text to send, or why there is none. `payloadBytes` is what 4 MiB bounds; `detail` names fields and rules, never a value. */
export type Written =
  | { readonly ok: true; readonly text: string; readonly payloadBytes: number }
  | { readonly ok: false; readonly reason: 'bad_message'; readonly detail: string }
  | {
      readonly ok: false;
      readonly reason: 'payload_too_large';
      readonly detail: string;
      readonly payloadBytes: number;
    };

const PAYLOADS: Readonly<Record<Direction, Readonly<Partial<Record<MessageType, z.ZodType>>>>> = {
  runnerToGateway: {
    hello: fromRunner.helloOut,
    heartbeat: fromRunner.runnerHeartbeatOut,
    ready: fromRunner.readyOut,
    accept: fromRunner.acceptOut,
    reject: fromRunner.rejectOut,
    progress: fromRunner.progressOut,
    'op.response': fromRunner.opResponseOut,
    complete: fromRunner.completeOut,
    fail: fromRunner.failOut,
    drain: fromRunner.drainOut,
    bye: fromRunner.byeOut,
  },
  gatewayToRunner: {
    welcome: fromGateway.welcomeOut,
    heartbeat: fromGateway.gatewayHeartbeatOut,
    assign: fromGateway.assignOut,
    'op.request': fromGateway.opRequestOut,
    cancel: fromGateway.cancelOut,
    drain: fromRunner.drainOut,
    bye: fromRunner.byeOut,
  },
};

const TEXT_MEMBERS: ReadonlySet<string> = new Set(['args', 'spec', 'result']);

function bad(detail: string): Written {
  return { ok: false, reason: 'bad_message', detail };
}

/** The payload with raw members stood in for by an empty object, so that the schema sees their kind and not their size. */
function schemaView(payload: JsonObject): JsonObject | string {
  const view: JsonObject = {};
  for (const [key, value] of Object.entries(payload)) {
    if (value === undefined) continue;
    if (!(value instanceof RawJson)) view[key] = value;
    else if (!TEXT_MEMBERS.has(key)) return `payload.${key}: must not be raw JSON`;
    else if (value.text.trimStart()[0] !== '{') return `payload.${key}: must be an object`;
    else view[key] = {};
  }
  return view;
}

function badIds(draft: { type: MessageType; id: string; jobId?: unknown; sessionId?: unknown }): string | undefined {
  const scope = MESSAGE_SCOPES[draft.type];
  if (!isName(draft.id)) return 'id: must be a string of 1 to 256 characters';
  if (scope === 'connection') {
    return draft.jobId === undefined && draft.sessionId === undefined
      ? undefined
      : `${draft.type} is connection-scoped: it has no jobId and no sessionId`;
  }
  if (!isId(draft.jobId)) return `${draft.type} is job-scoped: jobId is missing or not an id`;
  if (scope === 'job' && draft.sessionId === undefined) return undefined;
  return isId(draft.sessionId) ? undefined : `${draft.type}: sessionId is missing or not an id`;
}

/**
 * Writes a message that goes out in `direction`: a runner writes `runnerToGateway`, a gateway writes `gatewayToRunner`.
 * `args`, `spec` and `result` may be RawJson and are then written byte for byte.
 */
export function writeOutbound<D extends Direction>(draft: DraftOf<D>, direction: D): Written {
  const message: RunnerDraft | GatewayDraft = draft;
  const { type, id, payload } = message;
  const jobId = 'jobId' in message ? message.jobId : undefined;
  const sessionId = 'sessionId' in message ? message.sessionId : undefined;
  const schema = PAYLOADS[direction][type];
  if (schema === undefined) return bad(`${type} is not sent in this direction`);
  const wrongIds = badIds({ type, id, jobId, sessionId });
  if (wrongIds !== undefined) return bad(wrongIds);
  if (!isJsonObject(payload)) return bad('payload: must be an object');
  const view = schemaView(payload);
  if (typeof view === 'string') return bad(view);
  const checked = schema.safeParse(view);
  if (!checked.success) return bad(issueText(checked.error));
  let payloadText: string;
  try {
    payloadText = stringifyWithRaw(payload);
  } catch {
    return bad('payload: cannot be written as JSON');
  }
  const payloadBytes = utf8Bytes(payloadText, MAX_PAYLOAD_BYTES);
  if (payloadBytes > MAX_PAYLOAD_BYTES) {
    const detail = `payload: ${payloadBytes} bytes or more, ${MAX_PAYLOAD_BYTES} are allowed`;
    return { ok: false, reason: 'payload_too_large', detail, payloadBytes };
  }
  const head = JSON.stringify({ v: ENVELOPE_VERSION, type, id, jobId, sessionId });
  return { ok: true, text: `${head.slice(0, -1)},"payload":${payloadText}}`, payloadBytes };
}
