/**
 * Reads one frame's payload into an envelope: the common fields checked, all others kept as exact text until somebody asks.
 *
 * Order: UTF-8, then one walk over the text, then `version`, `type`, `request_id`. Whatever fails here is fatal to the
 * connection. A frame that is good JSON but exceeds a limit of its values still yields an envelope, with `excess` set: the reader
 * must answer that request with an error and must not pass its raw parts on.
 */
import { isUtf8 } from 'node:buffer';
import { type ExcessReason, JsonScanner } from './json-scanner.js';
import { MalformedJson, type MalformedReason } from './json-tokens.js';
import { JSON_LIMITS, type JsonLimits, MAX_ID_BYTES, MAX_TYPE_BYTES } from './limits.js';
import type { JsonValue } from './raw-json.js';

/** Why a payload is no envelope; `code` is the wire code of the one uncorrelated error sent before closing. */
export interface EnvelopeFault {
  readonly code: 'malformed_json' | 'unsupported_version' | 'invalid_frame';
  readonly reason:
    | MalformedReason
    | 'bad_utf8'
    | 'not_an_object'
    | 'version_alias_differs'
    | 'version_not_1'
    | 'bad_type'
    | 'bad_request_id';
}

/** The result of reading one payload. */
export type EnvelopeResult =
  | { readonly ok: true; readonly envelope: Envelope }
  | { readonly ok: false; readonly fault: EnvelopeFault };

/** A message whose common fields are known to be good. */
export class Envelope {
  constructor(
    /** The message's `type`, known or not. */
    readonly type: string,
    /** The message's `request_id`. */
    readonly requestId: string,
    /** The limit that the frame's values exceed, if any. */
    readonly excess: ExcessReason | undefined,
    private readonly text: string,
    private readonly names: readonly string[],
    private readonly bounds: readonly number[],
  ) {}

  /** The exact text of a field's value, or undefined when the field is absent. */
  raw(name: string): string | undefined {
    const at = this.names.indexOf(name);
    return at < 0 ? undefined : this.text.slice(this.bounds[2 * at], this.bounds[2 * at + 1]);
  }

  /** A field's value, or undefined when the field is absent. Only for fields whose numbers are small. */
  value(name: string): JsonValue | undefined {
    const at = this.names.indexOf(name);
    if (at < 0) return undefined;
    return decode(this.text, this.bounds[2 * at] ?? 0, this.bounds[2 * at + 1] ?? 0);
  }

  /** The names of all fields, in the order they came. */
  fields(): readonly string[] {
    return this.names;
  }
}

function decode(text: string, start: number, end: number): JsonValue {
  if (text.charCodeAt(start) === 34) {
    const inner = text.slice(start + 1, end - 1);
    if (!inner.includes('\\')) return inner;
  }
  return JSON.parse(text.slice(start, end)) as JsonValue;
}

const scanner = new JsonScanner(JSON_LIMITS);

/** Reads one payload; see the head of this file. */
export function readEnvelope(payload: Uint8Array, limits: JsonLimits = JSON_LIMITS): EnvelopeResult {
  if (!isUtf8(payload)) return refused('malformed_json', 'bad_utf8');
  const bytes = Buffer.isBuffer(payload) ? payload : Buffer.from(payload.buffer, payload.byteOffset, payload.length);
  return readEnvelopeText(bytes.toString('utf8'), limits);
}

/** The same for a payload that is text already. */
export function readEnvelopeText(text: string, limits: JsonLimits = JSON_LIMITS): EnvelopeResult {
  const names: string[] = [];
  const bounds: number[] = [];
  let excess: ExcessReason | undefined;
  try {
    scanner.begin(text, limits);
    const from = scanner.blank(0);
    const isObject = text.charCodeAt(from) === 123;
    const end = isObject ? scanner.object(from, names, bounds) : scanner.value(from, 1);
    const rest = scanner.blank(end);
    if (rest !== text.length) return refused('malformed_json', 'trailing_data');
    if (!isObject) return refused('invalid_frame', 'not_an_object');
    excess = scanner.excess;
  } catch (error) {
    if (!(error instanceof MalformedJson)) throw error;
    return refused(error.reason === 'duplicate_key' ? 'invalid_frame' : 'malformed_json', error.reason);
  } finally {
    scanner.end();
  }
  return checkEnvelope(text, names, bounds, excess);
}

function checkEnvelope(
  text: string,
  names: readonly string[],
  bounds: readonly number[],
  excess: ExcessReason | undefined,
): EnvelopeResult {
  const rawOf = (name: string): string | undefined => {
    const at = names.indexOf(name);
    return at < 0 ? undefined : text.slice(bounds[2 * at], bounds[2 * at + 1]);
  };
  const stringOf = (name: string): string | undefined => {
    const at = names.indexOf(name);
    const start = bounds[2 * at] ?? 0;
    if (at < 0 || text.charCodeAt(start) !== 34) return undefined;
    return decode(text, start, bounds[2 * at + 1] ?? 0) as string;
  };
  const version = rawOf('version');
  const alias = rawOf('v');
  if (version !== undefined && alias !== undefined && version !== alias) {
    return refused('invalid_frame', 'version_alias_differs');
  }
  if ((version ?? alias) !== '1') return refused('unsupported_version', 'version_not_1');
  const type = stringOf('type');
  if (type === undefined || !isBoundedText(type, MAX_TYPE_BYTES)) return refused('invalid_frame', 'bad_type');
  const requestId = stringOf('request_id');
  if (requestId === undefined || !isBoundedText(requestId, MAX_ID_BYTES))
    return refused('invalid_frame', 'bad_request_id');
  return { ok: true, envelope: new Envelope(type, requestId, excess, text, names, bounds) };
}

function refused(code: EnvelopeFault['code'], reason: EnvelopeFault['reason']): EnvelopeResult {
  return { ok: false, fault: { code, reason } };
}

/** Whether `value` is a string of 1 to `maxBytes` bytes of UTF-8 without NUL. */
export function isBoundedText(value: unknown, maxBytes: number): value is string {
  if (typeof value !== 'string' || value.length === 0 || value.length > maxBytes || value.includes('\0')) return false;
  return value.length * 3 <= maxBytes || Buffer.byteLength(value) <= maxBytes;
}
