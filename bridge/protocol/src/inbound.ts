/**
 * Reads one WebSocket text message. Tolerant: unknown fields are ignored, unknown types are reported as `ignored`, unknown strings of open
 * sets are kept. It never throws, and never lets one bad message decide about the next: what to do is the caller's choice, with the close code that
 * the specification names, if it names one.
 *
 * Order of the checks: size of the message, UTF-8, JSON, object, `v`, `type`, `id`, direction, size of the payload, ids of the scope, payload.
 */
import type { z } from 'zod';
import { isId } from './fields.js';
import * as fromGateway from './gateway-messages.js';
import { MAX_MESSAGE_BYTES, MAX_PAYLOAD_BYTES } from './limits.js';
import {
  CLOSE_CODES,
  type CloseCode,
  type Direction,
  ENVELOPE_VERSION,
  isMessageType,
  MESSAGE_DIRECTIONS,
  MESSAGE_SCOPES,
  type MessageType,
} from './names.js';
import { isJsonObject, type JsonObject, memberText, utf8Bytes } from './raw-json.js';
import * as fromRunner from './runner-messages.js';

/** What every message has besides its payload. */
type Envelope<T extends MessageType, P> = { readonly v: 1; readonly type: T; readonly id: string; readonly payload: P };
type InJob = { readonly jobId: string; readonly sessionId: string | undefined };
type InSession = { readonly jobId: string; readonly sessionId: string };

/** What a gateway reads. `resultText` is the exact JSON text of `payload.result`, undefined when there is none. */
export type RunnerMessage =
  | Envelope<'hello', fromRunner.Hello>
  | Envelope<'heartbeat', fromRunner.RunnerHeartbeat>
  | Envelope<'ready', fromRunner.Ready>
  | (Envelope<'accept', fromRunner.Accept> & InJob)
  | (Envelope<'reject', fromRunner.Reject> & InJob)
  | (Envelope<'progress', fromRunner.Progress> & InJob)
  | (Envelope<'op.response', fromRunner.OpResponse> & InSession & { readonly resultText: string | undefined })
  | (Envelope<'complete', fromRunner.Complete> & InJob)
  | (Envelope<'fail', fromRunner.Fail> & InJob)
  | Envelope<'drain', fromRunner.Drain>
  | Envelope<'bye', fromRunner.Bye>;

/** What a runner reads. `argsText` and `specText` are the exact JSON texts of `payload.args` and `payload.spec`; `{}` when left out or null. */
export type GatewayMessage =
  | Envelope<'welcome', fromGateway.Welcome>
  | Envelope<'heartbeat', fromGateway.GatewayHeartbeat>
  | (Envelope<'assign', fromGateway.Assign> & InJob & { readonly specText: string })
  | (Envelope<'op.request', fromGateway.OpRequest> & InSession & { readonly argsText: string })
  | (Envelope<'cancel', fromGateway.Cancel> & InJob)
  | Envelope<'drain', fromGateway.GatewayDrain>
  | Envelope<'bye', fromGateway.GatewayBye>;

/** The messages of one direction. */
export type MessageOf<D extends Direction> = D extends 'gatewayToRunner' ? GatewayMessage : RunnerMessage;

/** Why a message cannot be used. */
export type MalformedReason =
  | 'message_too_large'
  | 'not_utf8'
  | 'not_json'
  | 'not_object'
  | 'bad_envelope'
  | 'unsupported_version'
  | 'wrong_direction'
  | 'payload_too_large'
  | 'missing_job_id'
  | 'missing_session_id'
  | 'bad_payload';

/** What could still be read of a message that cannot be used; enough to answer or to log it. Nothing in it is a secret. */
export type Remains = {
  readonly type: string | undefined;
  readonly id: string | undefined;
  readonly jobId: string | undefined;
  readonly sessionId: string | undefined;
  readonly opId: string | undefined;
};

export type Malformed = Remains & {
  readonly kind: 'malformed';
  readonly reason: MalformedReason;
  /** Says which field and what is wrong with it; holds no value of the message. */
  readonly detail: string;
  /** Set when the specification names a close code for this. */
  readonly closeCode: CloseCode | undefined;
};

export type Inbound<D extends Direction> =
  | { readonly kind: 'message'; readonly message: MessageOf<D>; readonly bytes: number }
  | ({ readonly kind: 'ignored'; readonly reason: 'unknown_type' } & Remains)
  | Malformed;

const PAYLOADS: Readonly<Record<Direction, Readonly<Partial<Record<MessageType, z.ZodType>>>>> = {
  runnerToGateway: {
    hello: fromRunner.hello,
    heartbeat: fromRunner.runnerHeartbeat,
    ready: fromRunner.ready,
    accept: fromRunner.accept,
    reject: fromRunner.reject,
    progress: fromRunner.progress,
    'op.response': fromRunner.opResponse,
    complete: fromRunner.complete,
    fail: fromRunner.fail,
    drain: fromRunner.drain,
    bye: fromRunner.bye,
  },
  gatewayToRunner: {
    welcome: fromGateway.welcome,
    heartbeat: fromGateway.gatewayHeartbeat,
    assign: fromGateway.assign,
    'op.request': fromGateway.opRequest,
    cancel: fromGateway.cancel,
    drain: fromGateway.gatewayDrain,
    bye: fromGateway.gatewayBye,
  },
};

/** The member of each type whose exact text is kept, and what the message calls it. */
const KEPT_TEXTS: Readonly<Partial<Record<MessageType, { member: string; as: string; isInput: boolean }>>> = {
  assign: { member: 'spec', as: 'specText', isInput: true },
  'op.request': { member: 'args', as: 'argsText', isInput: true },
  'op.response': { member: 'result', as: 'resultText', isInput: false },
};

function shortString(value: unknown): string | undefined {
  return typeof value === 'string' && value.length > 0 && value.length <= 256 ? value : undefined;
}

function remainsOf(envelope: JsonObject): Remains {
  const payload = isJsonObject(envelope['payload']) ? envelope['payload'] : {};
  return {
    type: shortString(envelope['type']),
    id: shortString(envelope['id']),
    jobId: shortString(envelope['jobId']),
    sessionId: shortString(envelope['sessionId']),
    opId: shortString(payload['opId']),
  };
}

const NOTHING: Remains = { type: undefined, id: undefined, jobId: undefined, sessionId: undefined, opId: undefined };

function malformed(reason: MalformedReason, detail: string, remains = NOTHING, closeCode?: CloseCode): Malformed {
  return { kind: 'malformed', reason, detail, closeCode, ...remains };
}

/** The first thing a schema found, as "payload.running[2].jobId: Invalid input". Holds field names and rules, never a value. */
export function issueText(error: z.core.$ZodError, root = 'payload'): string {
  const issue = error.issues[0];
  if (issue === undefined) return `${root}: not valid`;
  const path = issue.path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`)).join('');
  return `${root}${path}: ${issue.code === 'unrecognized_keys' ? 'a field the specification does not name' : issue.message}`;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function decode(data: string | Uint8Array): { text: string; bytes: number } | Malformed {
  const bytes = typeof data === 'string' ? utf8Bytes(data, MAX_MESSAGE_BYTES) : data.byteLength;
  if (bytes > MAX_MESSAGE_BYTES) {
    const detail = `the message has more than ${MAX_MESSAGE_BYTES} bytes`;
    return malformed('message_too_large', detail, NOTHING, CLOSE_CODES.tooLarge);
  }
  if (typeof data === 'string') return { text: data, bytes };
  try {
    return { text: UTF8.decode(data), bytes };
  } catch {
    return malformed('not_utf8', 'the bytes are not UTF-8');
  }
}

function parse(text: string): { envelope: JsonObject } | Malformed {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return malformed('not_json', 'the text is not JSON');
  }
  return isJsonObject(value) ? { envelope: value } : malformed('not_object', 'the message is not a JSON object');
}

function badIds(envelope: JsonObject, type: MessageType, remains: Remains): Malformed | undefined {
  const scope = MESSAGE_SCOPES[type];
  if (scope === 'connection') return undefined;
  if (!isId(envelope['jobId'])) {
    return malformed('missing_job_id', `${type} is job-scoped: jobId is missing or not an id`, remains);
  }
  const sessionId = envelope['sessionId'];
  const mayLack = scope === 'job' && (sessionId === undefined || sessionId === null);
  if (mayLack || isId(sessionId)) return undefined;
  return malformed('missing_session_id', `${type}: sessionId is missing or not an id`, remains);
}

function keptText(type: MessageType, payloadText: string): Record<string, string | undefined> {
  const kept = KEPT_TEXTS[type];
  if (kept === undefined) return {};
  const text = memberText(payloadText, kept.member);
  const isNothing = text === undefined || text === 'null';
  return { [kept.as]: isNothing ? (kept.isInput ? '{}' : undefined) : text };
}

/**
 * Reads a message that came in `direction`: a runner reads `gatewayToRunner`, a gateway reads `runnerToGateway`.
 *
 * @param data the text of the frame, or its bytes. Set the socket's own limit to MAX_MESSAGE_BYTES, so that more than that is never buffered.
 * @returns a typed message, or `ignored` for a type this version does not know, or `malformed` with a reason; `closeCode` says how the
 *   specification wants the connection closed, where it says so.
 */
export function readInbound<D extends Direction>(data: string | Uint8Array, direction: D): Inbound<D> {
  const decoded = decode(data);
  if ('kind' in decoded) return decoded;
  const parsedText = parse(decoded.text);
  if ('kind' in parsedText) return parsedText;
  const { envelope } = parsedText;
  const remains = remainsOf(envelope);
  const { v, type, payload } = envelope;
  if (typeof v !== 'number' || !Number.isInteger(v)) return malformed('bad_envelope', 'v: must be an integer', remains);
  if (v !== ENVELOPE_VERSION) {
    return malformed('unsupported_version', `v: ${v} is not ${ENVELOPE_VERSION}`, remains, CLOSE_CODES.badHello);
  }
  if (typeof type !== 'string' || type === '') return malformed('bad_envelope', 'type: must be a string', remains);
  if (!isMessageType(type)) return { kind: 'ignored', reason: 'unknown_type', ...remains };
  if (remains.id === undefined)
    return malformed('bad_envelope', 'id: must be a string of 1 to 256 characters', remains);
  const schema = PAYLOADS[direction][type];
  if (schema === undefined || !MESSAGE_DIRECTIONS[type].includes(direction)) {
    return malformed('wrong_direction', `${type} is not sent in this direction`, remains);
  }
  if (!isJsonObject(payload)) return malformed('bad_envelope', 'payload: must be an object', remains);
  const payloadText = memberText(decoded.text, 'payload') ?? '{}';
  if (utf8Bytes(payloadText, MAX_PAYLOAD_BYTES) > MAX_PAYLOAD_BYTES) {
    const detail = `payload: more than ${MAX_PAYLOAD_BYTES} bytes`;
    return malformed('payload_too_large', detail, remains, CLOSE_CODES.tooLarge);
  }
  const wrongIds = badIds(envelope, type, remains);
  if (wrongIds !== undefined) return wrongIds;
  const parsed = schema.safeParse(payload);
  if (!parsed.success) return malformed('bad_payload', issueText(parsed.error), remains);
  const ids = MESSAGE_SCOPES[type] === 'connection' ? {} : { jobId: remains.jobId, sessionId: remains.sessionId };
  const message = { v, type, id: remains.id, ...ids, payload: parsed.data, ...keptText(type, payloadText) };
  // The table PAYLOADS ties each type to its schema; the compiler cannot follow it through a record.
  return { kind: 'message', message: message as unknown as MessageOf<D>, bytes: decoded.bytes };
}
