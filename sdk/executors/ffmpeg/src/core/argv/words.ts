/**
 * The rules every word of argv obeys before anything is understood: number and length of words, no NUL (C would cut there, the
 * runtime would refuse to start the program), no half of a surrogate pair (it would become another character on the way to ffmpeg).
 */
import { type Denial, denial } from './verdict.js';

/** Most words in an argv. */
export const MAX_WORDS = 512;
/** Longest word in UTF-8 bytes (Linux ends at 131,072). */
export const MAX_WORD_BYTES = 65_536;
/** All words together in UTF-8 bytes. */
export const MAX_ARGV_BYTES = 131_072;

/** Length in UTF-8 bytes; every lone half of a surrogate pair counts as three. */
export function utf8Bytes(text: string): number {
  let bytes = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) bytes += 1;
    else if (unit < 0x800) bytes += 2;
    else if (unit >= 0xd800 && unit <= 0xdbff && isLow(text.charCodeAt(at + 1))) {
      bytes += 4;
      at++;
    } else bytes += 3;
  }
  return bytes;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** True when a half of a surrogate pair stands alone. */
export function hasLoneSurrogate(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0xd800 || unit > 0xdfff) continue;
    if (unit > 0xdbff || !isLow(text.charCodeAt(at + 1))) return true;
    at++;
  }
  return false;
}

/** The first word that breaks a rule of words, if one does. */
export function checkWords(argv: readonly string[]): Denial | undefined {
  if (argv.length === 0) return denial({ rule: 'argv.empty', message: 'there is nothing to run' }, -1, '');
  if (argv.length > MAX_WORDS)
    return denial(
      { rule: 'argv.words', message: `at most ${MAX_WORDS} words are allowed, there are ${argv.length}` },
      -1,
      '',
    );
  let total = 0;
  for (const [index, word] of argv.entries()) {
    if (word.includes('\0'))
      return denial({ rule: 'argv.nul', message: 'a word may not contain a NUL character' }, index, word);
    if (hasLoneSurrogate(word))
      return denial(
        { rule: 'argv.unicode', message: 'the word is not valid Unicode (half of a surrogate pair)' },
        index,
        word,
      );
    const bytes = utf8Bytes(word);
    if (bytes > MAX_WORD_BYTES)
      return denial(
        { rule: 'argv.bytes', message: `a word may have ${MAX_WORD_BYTES} bytes, this one has ${bytes}` },
        index,
        word,
      );
    total += bytes + 1;
  }
  if (total > MAX_ARGV_BYTES)
    return denial(
      { rule: 'argv.bytes', message: `all words together may have ${MAX_ARGV_BYTES} bytes, these have ${total}` },
      -1,
      '',
    );
  return undefined;
}
