/**
 * JSON as text: op arguments and results travel through a runner byte for byte (2^70, 1.0 and the order of keys come out as they went in),
 * so they are cut out of a message as text and put into one as text, and are never re-serialized.
 *
 * The scanner below only ever sees text that JSON.parse has accepted; it finds boundaries, it does not validate. It keeps no stack: nesting is
 * a counter, so depth costs nothing.
 */

/** Any JSON object once parsed. */
export type JsonObject = { [key: string]: unknown };

/** One JSON value as text, checked at construction. Accepted wherever an outbound message takes `args`, `spec` or `result`. */
export class RawJson {
  readonly text: string;

  /** @throws SyntaxError when `text` is not exactly one JSON value. */
  constructor(text: string) {
    JSON.parse(text);
    this.text = text;
  }
}

/** `new RawJson(text)`. @throws SyntaxError when `text` is not exactly one JSON value. */
export function rawJson(text: string): RawJson {
  return new RawJson(text);
}

/** True for a parsed JSON object: not null, not an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** One member or element of a value: where its own text begins and ends in the whole text. */
export type Slice = { readonly key: string; readonly start: number; readonly end: number };

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Index just after the string that opens at `at`. */
export function stringEnd(text: string, at: number): number {
  let close = at;
  for (;;) {
    close = text.indexOf('"', close + 1);
    if (close < 0) throw new SyntaxError('the text is not JSON: a string has no end');
    let slashes = 0;
    while (text.charCodeAt(close - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return close + 1;
  }
}

/** Index of the first character from `at` on that is no white space. */
export function skipSpace(text: string, at: number): number {
  let next = at;
  while (next < text.length && text.charCodeAt(next) <= 0x20) next += 1;
  return next;
}

/** Index just after the value that begins at `at`. */
function valueEnd(text: string, at: number): number {
  let depth = 0;
  let next = at;
  while (next < text.length) {
    const code = text.charCodeAt(next);
    if (code === QUOTE) {
      next = stringEnd(text, next);
      if (depth === 0) return next;
    } else if (code === 0x7b || code === 0x5b) {
      depth += 1;
      next += 1;
    } else if (code === 0x7d || code === 0x5d) {
      if (depth === 0) return next;
      depth -= 1;
      next += 1;
      if (depth === 0) return next;
    } else if (depth === 0 && (code === 0x2c || code <= 0x20)) {
      return next;
    } else {
      next += 1;
    }
  }
  return next;
}

/**
 * The members of the object, or the elements of the array, that `text` holds between `from` and its end. Array elements have their index as key.
 * A repeated key is reported each time; the last one is the one JSON.parse keeps. Anything that is no object and no array has no members.
 */
export function slicesOf(text: string, from = 0): Slice[] {
  const found: Slice[] = [];
  let at = skipSpace(text, from);
  const open = text.charCodeAt(at);
  const isObject = open === 0x7b;
  if (!isObject && open !== 0x5b) return found;
  at = skipSpace(text, at + 1);
  while (at < text.length && text.charCodeAt(at) !== (isObject ? 0x7d : 0x5d)) {
    let key = String(found.length);
    if (isObject) {
      const keyEnd = stringEnd(text, at);
      key = text.slice(at + 1, keyEnd - 1);
      if (key.includes('\\')) key = String(JSON.parse(`"${key}"`));
      at = skipSpace(text, skipSpace(text, keyEnd) + 1);
    }
    const end = valueEnd(text, at);
    found.push({ key, start: at, end });
    at = skipSpace(text, end);
    if (text.charCodeAt(at) === 0x2c) at = skipSpace(text, at + 1);
  }
  return found;
}

/** The text of the member `key` of the object `text`, exactly as written; undefined when there is none. */
export function memberText(text: string, key: string): string | undefined {
  let found: Slice | undefined;
  for (const slice of slicesOf(text)) if (slice.key === key) found = slice;
  return found === undefined ? undefined : text.slice(found.start, found.end);
}

/**
 * Serializes an object whose own members may be RawJson; those are inserted as they are. Members that are undefined are left out.
 * @throws TypeError or RangeError as JSON.stringify does (cycles, a depth the engine cannot hold).
 */
export function stringifyWithRaw(value: JsonObject): string {
  const members: string[] = [];
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    const text = member instanceof RawJson ? member.text : JSON.stringify(member);
    if (text !== undefined) members.push(`${JSON.stringify(key)}:${text}`);
  }
  return `{${members.join(',')}}`;
}

/** UTF-8 bytes of `text`; with `limit`, exact only up to it: a text that is surely longer may answer its length without being encoded. */
export function utf8Bytes(text: string, limit = Number.POSITIVE_INFINITY): number {
  if (text.length > limit) return text.length;
  let bytes = text.length;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 0x80) continue;
    const pairs = code >= 0xd800 && code <= 0xdbff && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00;
    if (pairs) at += 1;
    bytes += code < 0x800 ? 1 : 2;
  }
  return bytes;
}
