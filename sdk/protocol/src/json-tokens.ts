/**
 * The tokens of JSON as pure functions over a text: where an escape or a number that begins here ends, or why it is none.
 */

/** Why a text is not acceptable JSON. `at` counts UTF-16 units from its start. */
export type MalformedReason =
  | 'unexpected_end'
  | 'unexpected_character'
  | 'trailing_data'
  | 'control_character'
  | 'bad_escape'
  | 'lone_surrogate'
  | 'bad_number'
  | 'duplicate_key';

/** The text is not JSON, or not JSON that every peer reads the same way. */
export class MalformedJson extends Error {
  override readonly name = 'MalformedJson';
  constructor(
    readonly reason: MalformedReason,
    readonly at: number,
  ) {
    super(`${reason.replaceAll('_', ' ')} at character ${at}`);
  }
}

/** The escape whose backslash is at `i`: the index of its last character. @throws MalformedJson */
export function escapeEnd(text: string, i: number): number {
  const c = text.charCodeAt(i + 1);
  if (c === 117) {
    const unit = hex4(text, i + 2);
    if (unit < 0xd800 || unit > 0xdfff) return i + 5;
    const low = unit < 0xdc00 && text.startsWith('\\u', i + 6) ? hex4(text, i + 8) : 0;
    if (low < 0xdc00 || low > 0xdfff) throw new MalformedJson('lone_surrogate', i);
    return i + 11;
  }
  // " \ / b f n r t
  if (c === 34 || c === 92 || c === 47 || c === 98 || c === 102 || c === 110 || c === 114 || c === 116) return i + 1;
  throw new MalformedJson(i + 1 >= text.length ? 'unexpected_end' : 'bad_escape', i);
}

function hex4(text: string, i: number): number {
  let unit = 0;
  for (let at = i; at < i + 4; at += 1) {
    const c = text.charCodeAt(at);
    let digit = -1;
    if (c >= 48 && c <= 57) digit = c - 48;
    else if ((c >= 65 && c <= 70) || (c >= 97 && c <= 102)) digit = (c | 32) - 87;
    if (digit < 0) throw new MalformedJson(at >= text.length ? 'unexpected_end' : 'bad_escape', at);
    unit = unit * 16 + digit;
  }
  return unit;
}

function digitsEnd(text: string, i: number): number {
  const start = i;
  let c = text.charCodeAt(i);
  while (c >= 48 && c <= 57) {
    i += 1;
    c = text.charCodeAt(i);
  }
  if (i === start) throw new MalformedJson(i >= text.length ? 'unexpected_end' : 'bad_number', i);
  return i;
}

/** The number that begins at `i`: the index after it. @throws MalformedJson */
export function numberEnd(text: string, i: number): number {
  if (text.charCodeAt(i) === 45) i += 1;
  if (text.charCodeAt(i) === 48) {
    i += 1;
    const c = text.charCodeAt(i);
    if (c >= 48 && c <= 57) throw new MalformedJson('bad_number', i);
  } else i = digitsEnd(text, i);
  if (text.charCodeAt(i) === 46) i = digitsEnd(text, i + 1);
  const e = text.charCodeAt(i);
  if (e === 101 || e === 69) {
    const sign = text.charCodeAt(i + 1);
    i = digitsEnd(text, sign === 43 || sign === 45 ? i + 2 : i + 1);
  }
  return i;
}

const SHORT_NUMBER = 18;

/** Whether a number that fits the grammar is too large to be read everywhere: not finite, or an integer with too many digits. */
export function isOutOfRange(text: string, start: number, end: number, maxIntegerDigits: number): boolean {
  let hasExponent = false;
  if (end - start < SHORT_NUMBER) {
    for (let at = start; at < end; at += 1) if ((text.charCodeAt(at) | 32) === 101) hasExponent = true;
    if (!hasExponent) return false;
  }
  const number = text.slice(start, end);
  if (/^-?\d+$/.test(number)) return number.replace('-', '').length > maxIntegerDigits;
  return !Number.isFinite(Number(number));
}

/** Whether a stretch without quotes and backslashes is free of control characters, judged by the engine's own reader. */
export function isPlain(text: string, from: number, to: number): boolean {
  try {
    JSON.parse(`"${text.slice(from, to)}"`);
    return true;
  } catch {
    // The slow way finds out where exactly.
    return false;
  }
}
