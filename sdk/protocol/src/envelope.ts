/**
 * Reads one frame's payload into an envelope: the common fields checked, all others kept as exact text until somebody asks.
 *
 * Order: UTF-8 (looked at only where a byte is beyond ASCII), one walk over the bytes, then `version`, `type`, `request_id`. Whatever fails here is fatal to the
 * connection. A frame that is good JSON but exceeds a limit of its values still yields an envelope, with `excess` set: the reader
 * must answer that request with an error and must not pass its raw parts on.
 */
import { isUtf8 } from 'node:buffer';
import { type ExcessReason, SCANNER } from './json-scanner.js';
import { MalformedJson } from './json-tokens.js';
import { JSON_LIMITS, type JsonLimits, MAX_ID_BYTES, MAX_TYPE_BYTES } from './limits.js';
import { type FaultCause, type ProtocolFault, protocolFault } from './protocol-faults.js';
import type { JsonValue } from './raw-json.js';

/** The result of reading one payload. */
export type EnvelopeResult =
  | { readonly ok: true; readonly envelope: Envelope }
  | { readonly ok: false; readonly fault: ProtocolFault };

const QUOTE = 34;

/** Indices into a text, four per member: start (inverted when there are escapes in it) and end of the key, start and end of the value. */
type Members = readonly number[];

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
    private readonly members: Members,
  ) {}

  /** The exact text of a field's value, or undefined when the field is absent. */
  raw(name: string): string | undefined {
    const at = find(this.text, this.members, name);
    return at < 0 ? undefined : rawAt(this.text, this.members, at);
  }

  /** A field's value, or undefined when the field is absent. Only for fields whose numbers are small. */
  value(name: string): JsonValue | undefined {
    const at = find(this.text, this.members, name);
    return at < 0 ? undefined : valueAt(this.text, this.members, at);
  }

  /** The names of all fields, in the order they came. */
  fields(): readonly string[] {
    const names: string[] = [];
    for (let at = 0; at < this.members.length; at += 4) names.push(nameOf(this.text, this.members, at));
    return names;
  }
}

function nameOf(text: string, members: Members, at: number): string {
  const start = members[at] ?? 0;
  const end = members[at + 1] ?? 0;
  return start < 0 ? (JSON.parse(text.slice(~start - 1, end + 1)) as string) : text.slice(start, end);
}

/** Where the member of this name stands among the indices, or -1. */
function find(text: string, members: Members, name: string): number {
  const { length } = name;
  for (let at = 0; at < members.length; at += 4) {
    const start = members[at] as number;
    if (
      start < 0 ? nameOf(text, members, at) === name : members[at + 1] === start + length && isAt(text, start, name)
    ) {
      return at;
    }
  }
  return -1;
}

/** Whether `text` has `name` at `start`. By hand: for a few characters `startsWith` is several times as dear. */
function isAt(text: string, start: number, name: string): boolean {
  for (let at = 0; at < name.length; at += 1) {
    if (text.charCodeAt(start + at) !== name.charCodeAt(at)) return false;
  }
  return true;
}

function rawAt(text: string, members: Members, at: number): string {
  return text.slice(members[at + 2], members[at + 3]);
}

function valueAt(text: string, members: Members, at: number): JsonValue {
  const start = members[at + 2] as number;
  if (text.charCodeAt(start) === QUOTE) {
    const inner = text.slice(start + 1, (members[at + 3] as number) - 1);
    if (!inner.includes('\\')) return inner;
  }
  return JSON.parse(rawAt(text, members, at)) as JsonValue;
}

/** Reads one payload; see the head of this file. */
export function readEnvelope(payload: Uint8Array, limits: JsonLimits = JSON_LIMITS): EnvelopeResult {
  const members: number[] = [];
  try {
    SCANNER.begin(payload, limits);
    const from = SCANNER.blank(0);
    const isObject = payload[from] === 123;
    const end = isObject ? SCANNER.object(from, members) : SCANNER.value(from, 1);
    if (!SCANNER.isAscii && !isUtf8(payload)) return refused('bad_utf8');
    if (!SCANNER.isEnd(end)) return refused(isUtf8(payload) ? 'trailing_data' : 'bad_utf8');
    if (!isObject) return refused('not_an_object');
    const bytes = Buffer.isBuffer(payload) ? payload : Buffer.from(payload.buffer, payload.byteOffset, payload.length);
    if (SCANNER.isAscii) return checkEnvelope(bytes.toString('latin1'), members, SCANNER.excess);
    toCharacters(bytes, members);
    return checkEnvelope(bytes.toString('utf8'), members, SCANNER.excess);
  } catch (error) {
    if (!(error instanceof MalformedJson)) throw error;
    if (!isUtf8(payload)) return refused('bad_utf8');
    return refused(error.reason, `at byte ${error.at}`);
  } finally {
    SCANNER.end();
  }
}

/** The same for a payload that is text already. */
export function readEnvelopeText(text: string, limits: JsonLimits = JSON_LIMITS): EnvelopeResult {
  return readEnvelope(Buffer.from(text), limits);
}

/** Turns rising indices into bytes into indices into the characters (UTF-16) of the same text. */
function toCharacters(bytes: Uint8Array, indices: number[]): void {
  let at = 0;
  let characters = 0;
  for (let n = 0; n < indices.length; n += 1) {
    const index = indices[n] ?? 0;
    for (const end = index < 0 ? ~index : index; at < end; at += 1) {
      const byte = bytes[at] ?? 0;
      // Not a byte that continues a character; four bytes make two units.
      if ((byte & 0xc0) !== 0x80) characters += byte >= 0xf0 ? 2 : 1;
    }
    indices[n] = index < 0 ? ~characters : characters;
  }
}

function checkEnvelope(text: string, members: Members, excess: ExcessReason | undefined): EnvelopeResult {
  const version = find(text, members, 'version');
  const alias = find(text, members, 'v');
  if (version >= 0 && alias >= 0 && rawAt(text, members, version) !== rawAt(text, members, alias)) {
    return refused('version_alias_differs');
  }
  const at = version >= 0 ? version : alias;
  if (at < 0 || rawAt(text, members, at) !== '1') return refused('version_not_1');
  const type = stringOf(text, members, 'type');
  if (!isBoundedText(type, MAX_TYPE_BYTES)) return refused('bad_type');
  const requestId = stringOf(text, members, 'request_id');
  if (!isBoundedText(requestId, MAX_ID_BYTES)) return refused('bad_request_id');
  return { ok: true, envelope: new Envelope(type, requestId, excess, text, members) };
}

function stringOf(text: string, members: Members, name: string): string | undefined {
  const at = find(text, members, name);
  if (at < 0 || text.charCodeAt(members[at + 2] as number) !== QUOTE) return undefined;
  return valueAt(text, members, at) as string;
}

function refused(cause: FaultCause, where?: string): EnvelopeResult {
  return { ok: false, fault: protocolFault(cause, where) };
}

/** Whether `value` is a string of 1 to `maxBytes` bytes of UTF-8 without NUL. */
export function isBoundedText(value: unknown, maxBytes: number): value is string {
  if (typeof value !== 'string' || value.length === 0 || value.length > maxBytes || value.includes('\0')) return false;
  return value.length * 3 <= maxBytes || Buffer.byteLength(value) <= maxBytes;
}
