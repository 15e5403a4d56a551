/**
 * Reads a concat list as ffmpeg's concat demuxer does: a keyword to the first blank, strings by av_get_token. Only directives that
 * cannot change how a file is opened are allowed: `option` could set any demuxer option, the protocol whitelist included.
 */
import { type Cursor, readToken } from './token.js';
import type { Problem } from './verdict.js';

/** Largest list in bytes. */
export const MAX_LIST_BYTES = 1_048_576;
/** Most entries in a list. */
export const MAX_LIST_ENTRIES = 10_000;

/** The files of a list as they are written there (relative to the list's folder). */
export type ConcatList = { ok: true; files: { name: string; line: number }[] } | { ok: false; problem: Problem };

const BLANKS = ' \t\r\n';
const TIME = /^[-+]?(\d+:)?(\d+:)?\d*(\.\d*)?(us|ms|s)?$/;

/** Parses a list. `text` is decoded UTF-8. */
export function parseConcatList(text: string): ConcatList {
  const bad = (line: number, message: string, rule = 'list.syntax'): ConcatList => ({
    ok: false,
    problem: { rule, message: `line ${line} of the list: ${message}` },
  });
  if (text.includes('\0')) return bad(1, 'NUL characters are not allowed');
  if (text.includes('\ufffd')) return bad(1, 'the list is not valid UTF-8');
  const files: { name: string; line: number }[] = [];
  for (const [at, raw] of text.split(/\r\n|\n|\r/).entries()) {
    const line = at + 1;
    const start = raw.search(/[^ \t\r\n]/);
    if (start < 0) continue;
    const rest = raw.slice(start);
    const end = rest.search(/[ \t\r\n]/);
    const keyword = end < 0 ? rest : rest.slice(0, end);
    if (keyword.startsWith('#')) continue;
    const cursor: Cursor = { text: end < 0 ? '' : rest.slice(end), at: 0 };
    while (cursor.at < cursor.text.length && BLANKS.includes(cursor.text.charAt(cursor.at))) cursor.at++;
    const argument = readToken(cursor, BLANKS);
    if (argument.unterminated) return bad(line, 'a quote is opened and never closed');
    switch (keyword) {
      case 'ffconcat':
        if (argument.value !== 'version') return bad(line, '"ffconcat version 1.0" is expected');
        break;
      case 'file':
        if (argument.value === '') return bad(line, 'a file name is missing');
        files.push({ name: argument.value, line });
        if (files.length > MAX_LIST_ENTRIES) return bad(line, `a list may have ${MAX_LIST_ENTRIES} entries`);
        break;
      case 'duration':
      case 'inpoint':
      case 'outpoint':
        if (!TIME.test(argument.value)) return bad(line, `${keyword} needs a time`);
        break;
      case 'stream':
      case 'exact_stream_id':
      case 'stream_meta':
      case 'stream_codec':
      case 'stream_extradata':
      case 'file_packet_meta':
      case 'file_packet_metadata':
      case 'chapter':
        break;
      case 'option':
        return bad(line, '"option" could set any demuxer option and is not allowed', 'list.option');
      default:
        return bad(line, `the directive "${keyword.slice(0, 40)}" is not known`, 'list.directive');
    }
  }
  if (files.length === 0) return bad(1, 'the list names no file');
  return { ok: true, files };
}

/** Decodes UTF-8 given as one character per byte; what is not valid becomes U+FFFD. */
export function decodeUtf8(bytes: string): string {
  let out = '';
  for (let at = 0; at < bytes.length; ) {
    const first = bytes.charCodeAt(at);
    const extra =
      first < 0x80
        ? 0
        : first >= 0xc2 && first <= 0xdf
          ? 1
          : first >= 0xe0 && first <= 0xef
            ? 2
            : first >= 0xf0 && first <= 0xf4
              ? 3
              : -1;
    let point = extra < 0 ? 0xfffd : extra === 0 ? first : first & (0x3f >> extra);
    let good = extra >= 0;
    for (let n = 1; good && n <= extra; n++) {
      const next = bytes.charCodeAt(at + n);
      good = next >= 0x80 && next <= 0xbf;
      point = (point << 6) | (next & 0x3f);
    }
    const least = [0, 0x80, 0x800, 0x10000][Math.max(extra, 0)] ?? 0;
    good &&= point >= least && point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
    out += good ? String.fromCodePoint(point) : '\ufffd';
    at += good ? extra + 1 : 1;
  }
  return out;
}
