/**
 * ffmpeg's own string splitting (av_get_token, av_opt_get_key_value), to the letter: what it takes for a quote, an escape, a blank or
 * an end is taken for the same here. It never decides whether something is allowed.
 */

const BLANKS = ' \n\t\r';

/** A cursor over one string. `at` moves. */
export type Cursor = { readonly text: string; at: number };

/** Skips what ffmpeg calls whitespace. */
export function skipBlanks(cursor: Cursor): void {
  while (cursor.at < cursor.text.length && BLANKS.includes(cursor.text.charAt(cursor.at))) cursor.at++;
}

/** One token, and whether a quote in it never ended (ffmpeg takes the rest then; we refuse such strings). */
export type Token = { value: string; unterminated: boolean };

/**
 * av_get_token: unescapes up to (not including) the first unquoted character of `ends`; leading blanks and trailing unprotected
 * blanks fall away. A backslash at the very end of the text stands for itself.
 */
export function readToken(cursor: Cursor, ends: string): Token {
  const { text } = cursor;
  skipBlanks(cursor);
  let out = '';
  let protectedLength = 0;
  let unterminated = false;
  while (cursor.at < text.length && !ends.includes(text.charAt(cursor.at))) {
    const c = text.charAt(cursor.at++);
    if (c === '\\' && cursor.at < text.length) {
      out += text.charAt(cursor.at++);
      protectedLength = out.length;
    } else if (c === "'") {
      while (cursor.at < text.length && text.charAt(cursor.at) !== "'") out += text.charAt(cursor.at++);
      if (cursor.at < text.length) {
        cursor.at++;
        protectedLength = out.length;
      } else {
        unterminated = true;
      }
    } else {
      out += c;
    }
  }
  let length = out.length;
  while (length > protectedLength && BLANKS.includes(out.charAt(length - 1))) length--;
  return { value: out.slice(0, length), unterminated };
}

/** One `key=value` (key undefined: a value alone). */
export type Pair = { key: string | undefined; value: string; unterminated: boolean };

const KEY_CHARACTER = /[A-Za-z0-9\-_/.]/;

/** av_opt_get_key_value: splits `text` at `separator` into pairs; a piece that does not begin with `key=` is a value alone. */
export function readPairs(text: string, separator: string, equals = '='): Pair[] {
  const cursor: Cursor = { text, at: 0 };
  const pairs: Pair[] = [];
  while (cursor.at < text.length) {
    const key = readKey(cursor, equals);
    const token = readToken(cursor, separator);
    pairs.push({ key, value: token.value, unterminated: token.unterminated });
    if (cursor.at < text.length) cursor.at++;
  }
  return pairs;
}

function readKey(cursor: Cursor, equals: string): string | undefined {
  const probe: Cursor = { text: cursor.text, at: cursor.at };
  skipBlanks(probe);
  const start = probe.at;
  while (probe.at < probe.text.length && KEY_CHARACTER.test(probe.text.charAt(probe.at))) probe.at++;
  const end = probe.at;
  skipBlanks(probe);
  if (probe.at >= probe.text.length || !equals.includes(probe.text.charAt(probe.at))) return undefined;
  cursor.at = probe.at + 1;
  return probe.text.slice(start, end);
}
