/**
 * The tokens of JSON as pure functions over bytes: where an escape or a number that begins here ends, or why it is none.
 *
 * The bytes are followed by a zero, which is part of no token: whoever reads on byte by byte stops there at the latest and need not ask for the end.
 */

import { type MalformedReason, protocolFault } from './protocol-faults.js';

/** The text is not JSON, or not JSON that every peer reads the same way. `at` counts bytes from its start. */
export class MalformedJson extends Error {
  override readonly name = 'MalformedJson';
  constructor(
    readonly reason: MalformedReason,
    readonly at: number,
  ) {
    super(protocolFault(reason, `at byte ${at}`).reason);
  }
}

/** The escape whose backslash is at `i`, in a text that ends at `end`: the index of its last byte. @throws MalformedJson */
export function escapeEnd(bytes: Uint8Array, i: number, end: number): number {
  const c = bytes[i + 1];
  if (c === 117) {
    const unit = hex4(bytes, i + 2, end);
    if (unit < 0xd800 || unit > 0xdfff) return i + 5;
    const isPair = unit < 0xdc00 && bytes[i + 6] === 92 && bytes[i + 7] === 117;
    const low = isPair ? hex4(bytes, i + 8, end) : 0;
    if (low < 0xdc00 || low > 0xdfff) throw new MalformedJson('lone_surrogate', i);
    return i + 11;
  }
  // " \ / b f n r t
  if (c === 34 || c === 92 || c === 47 || c === 98 || c === 102 || c === 110 || c === 114 || c === 116) return i + 1;
  throw new MalformedJson(i + 1 >= end ? 'unexpected_end' : 'bad_escape', i);
}

function hex4(bytes: Uint8Array, i: number, end: number): number {
  let unit = 0;
  for (let at = i; at < i + 4; at += 1) {
    const c = bytes[at] ?? 0;
    let digit = -1;
    if (c >= 48 && c <= 57) digit = c - 48;
    else if ((c >= 65 && c <= 70) || (c >= 97 && c <= 102)) digit = (c | 32) - 87;
    if (digit < 0) throw new MalformedJson(at >= end ? 'unexpected_end' : 'bad_escape', at);
    unit = unit * 16 + digit;
  }
  return unit;
}

function digitsEnd(bytes: Uint8Array, i: number, end: number): number {
  const start = i;
  while (isDigit(bytes[i])) i += 1;
  if (i === start) throw new MalformedJson(i >= end ? 'unexpected_end' : 'bad_number', i);
  return i;
}

function isDigit(c: number | undefined): boolean {
  return c !== undefined && c >= 48 && c <= 57;
}

/** The number that begins at `i`, in a text that ends at `end`: the index after it. @throws MalformedJson */
export function numberEnd(bytes: Uint8Array, i: number, end: number): number {
  if (bytes[i] === 45) i += 1;
  if (bytes[i] === 48) {
    i += 1;
    if (isDigit(bytes[i])) throw new MalformedJson('bad_number', i);
  } else i = digitsEnd(bytes, i, end);
  if (bytes[i] === 46) i = digitsEnd(bytes, i + 1, end);
  const e = bytes[i];
  if (e === 101 || e === 69) {
    const sign = bytes[i + 1];
    i = digitsEnd(bytes, sign === 43 || sign === 45 ? i + 2 : i + 1, end);
  }
  return i;
}

const SHORT_NUMBER = 18;

/** Whether a number that fits the grammar is too large to be read everywhere: not finite, or an integer with too many digits. */
export function isOutOfRange(bytes: Uint8Array, start: number, end: number, maxIntegerDigits: number): boolean {
  if (end - start < SHORT_NUMBER) {
    let hasExponent = false;
    for (let at = start; at < end; at += 1) if (((bytes[at] ?? 0) | 32) === 101) hasExponent = true;
    if (!hasExponent) return false;
  }
  const number = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('latin1');
  if (/^-?\d+$/.test(number)) return number.replace('-', '').length > maxIntegerDigits;
  return !Number.isFinite(Number(number));
}
