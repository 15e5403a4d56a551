/**
 * JSON that travels as text. `args` and `result` are never turned into JavaScript values on their way, because that would turn
 * 2^70 into 1.1805916207174113e21 and 1.0 into 1; they are spliced into messages byte for byte.
 */
import { checkJson } from './json-scanner.js';
import { VALUE_LIMITS_EXTENSION } from './limits.js';

/** Any JSON value. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;
/** A JSON object. */
export type JsonObject = { [key: string]: JsonValue };

/** One JSON value as its text. */
export class RawJson {
  readonly text: string;

  /** @throws MalformedJson or RangeError when `text` is not one JSON value that the protocol can carry. */
  constructor(text: string) {
    const excess = checkJson(text, VALUE_LIMITS_EXTENSION);
    if (excess !== undefined) throw new RangeError(`JSON can not be carried: ${excess.replaceAll('_', ' ')}`);
    this.text = text;
  }

  /** Wraps a text that is known to be JSON, e.g. because it was cut out of a checked frame. */
  static trusted(text: string): RawJson {
    const raw = Object.create(RawJson.prototype) as { text: string };
    raw.text = text;
    return raw as RawJson;
  }

  /** The value as JavaScript sees it; integers beyond 2^53 and the difference of 1 and 1.0 are lost. */
  value(): JsonValue {
    return JSON.parse(this.text) as JsonValue;
  }
}

/** The text of a JSON value, to be sent as it is. @throws MalformedJson when it is none. */
export function raw(text: string): RawJson {
  return new RawJson(text);
}

/** The JSON value null as text. */
export const RAW_NULL: RawJson = RawJson.trusted('null');

/** What `stringify` accepts: JSON values in which any part may be raw, and absent members. */
export type Encodable = JsonValue | RawJson | undefined | readonly Encodable[] | { readonly [key: string]: Encodable };

const PLAIN = /^[\w .:/+-]*$/;

/** A string as JSON text. */
export function quote(text: string): string {
  return text.length < 200 && PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}

/** JSON text of a value whose parts may be raw; absent members are left out. */
export function stringify(value: Encodable): string {
  if (typeof value === 'string') return quote(value);
  if (value === null || typeof value !== 'object') return JSON.stringify(value ?? null);
  if (value instanceof RawJson) return value.text;
  if (Array.isArray(value)) return `[${value.map(stringify).join(',')}]`;
  let text = '';
  for (const [key, member] of Object.entries(value as { readonly [key: string]: Encodable })) {
    if (member !== undefined) text += `${text === '' ? '' : ','}${quote(key)}:${stringify(member)}`;
  }
  return `{${text}}`;
}
