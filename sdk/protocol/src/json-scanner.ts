/**
 * Walks one JSON text exactly once and says whether it is what the protocol allows, without building a value from it.
 *
 * It decides: grammar (RFC 8259, stricter than most readers: no duplicate keys, no half surrogate pairs) and the
 * limits of `JsonLimits`. A breach of the grammar throws `MalformedJson`. A breach of a limit in otherwise good JSON is
 * recorded in `excess` and the walk goes on, so that the caller can still find out which request it was and answer it.
 *
 * It must never recurse (depth comes from the peer) and never allocate per value: the broker runs it on each frame.
 * Keys are compared by a hash first; an object with many keys falls back to a Set, whose hashing a peer cannot aim at.
 */
import type { JsonLimits } from './limits.js';

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

/** Which limit a well-formed text exceeds. */
export type ExcessReason = 'too_deep' | 'too_many_values' | 'key_too_long' | 'number_out_of_range';

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

const LINEAR_KEYS = 12;
const QUOTE = 34;
const BACKSLASH = 92;

/** A reusable scanner; one instance serves one text at a time. */
export class JsonScanner {
  /** The first limit that was exceeded, or undefined. */
  excess: ExcessReason | undefined;
  #text = '';
  #limits: JsonLimits;
  #values = 0;
  // One entry per open container: -1 for an array, else the index of the object's first key in the key stacks.
  readonly #open: number[] = [];
  readonly #sets: (Set<string> | undefined)[] = [];
  // The keys of all open objects, as a stack: hash, start and end (without quotes).
  #hashes: number[] = [];
  #starts: number[] = [];
  #ends: number[] = [];
  #keyHash = 0;
  #keyEscaped = false;

  constructor(limits: JsonLimits) {
    this.#limits = limits;
  }

  /** Begins a new text; forgets everything of the last one. */
  begin(text: string, limits: JsonLimits = this.#limits): void {
    this.#text = text;
    this.#limits = limits;
    this.#values = 0;
    this.excess = undefined;
    this.#open.length = 0;
    this.#sets.length = 0;
    this.#hashes.length = 0;
    this.#starts.length = 0;
    this.#ends.length = 0;
  }

  /** Lets go of the last text, so that it can be collected. */
  end(): void {
    this.#text = '';
    this.#sets.length = 0;
  }

  /** Skips blanks from `i` on and answers the first other index. */
  blank(i: number): number {
    const text = this.#text;
    for (;;) {
      const c = text.charCodeAt(i);
      if (c === 32 || c === 10 || c === 13 || c === 9) i += 1;
      else return i;
    }
  }

  /**
   * Scans the object that begins at `i` (its brace), calling `member` with each key's bounds (without quotes) and its value's
   * bounds. The object is level 1. Answers the index after the closing brace.
   */
  object(i: number, member: (key: string, start: number, end: number) => void): number {
    const text = this.#text;
    this.#values = 1;
    this.#open.push(0);
    this.#sets.push(undefined);
    i = this.blank(i + 1);
    if (text.charCodeAt(i) === 125) {
      this.#pop();
      return i + 1;
    }
    for (;;) {
      const keyStart = i + 1;
      const keyEnd = this.#key(i);
      i = this.blank(keyEnd + 1);
      if (text.charCodeAt(i) !== 58) this.#unexpected(i);
      const start = this.blank(i + 1);
      const escaped = this.#keyEscaped;
      const end = this.value(start, 2);
      member(escaped ? this.#decode(keyStart, keyEnd) : text.slice(keyStart, keyEnd), start, end);
      i = this.blank(end);
      const c = text.charCodeAt(i);
      if (c === 44) i = this.blank(i + 1);
      else if (c === 125) {
        this.#pop();
        return i + 1;
      } else this.#unexpected(i);
    }
  }

  /** Scans the value that begins at `i`, itself at nesting level `level`; answers the index after it. */
  value(i: number, level: number): number {
    const text = this.#text;
    const { maxDepth, maxValues } = this.#limits;
    const floor = this.#open.length;
    const base = level - floor;
    for (;;) {
      // A value begins at i.
      this.#values += 1;
      if (this.#values > maxValues) this.#exceed('too_many_values');
      if (this.#open.length + base > maxDepth) this.#exceed('too_deep');
      const c = text.charCodeAt(i);
      if (c === QUOTE) i = this.#string(i + 1) + 1;
      else if (c === 123) {
        i = this.blank(i + 1);
        if (text.charCodeAt(i) !== 125) {
          this.#open.push(this.#hashes.length);
          this.#sets.push(undefined);
          i = this.#colon(this.#key(i) + 1);
          continue;
        }
        i += 1;
      } else if (c === 91) {
        i = this.blank(i + 1);
        if (text.charCodeAt(i) !== 93) {
          this.#open.push(-1);
          this.#sets.push(undefined);
          continue;
        }
        i += 1;
      } else if (c === 45 || (c >= 48 && c <= 57)) i = this.#number(i);
      else if (c === 116) i = this.#word(i, 'true');
      else if (c === 102) i = this.#word(i, 'false');
      else if (c === 110) i = this.#word(i, 'null');
      else this.#unexpected(i);

      // A value has ended before i: close containers, or go to the next member.
      for (;;) {
        const depth = this.#open.length;
        if (depth === floor) return i;
        i = this.blank(i);
        const next = text.charCodeAt(i);
        const inArray = this.#open[depth - 1] === -1;
        if (next === 44) {
          i = this.blank(i + 1);
          if (!inArray) i = this.#colon(this.#key(i) + 1);
          break;
        }
        if (next !== (inArray ? 93 : 125)) this.#unexpected(i);
        this.#pop();
        i += 1;
      }
    }
  }

  #pop(): void {
    const first = this.#open.pop() ?? -1;
    this.#sets.pop();
    if (first < 0) return;
    this.#hashes.length = first;
    this.#starts.length = first;
    this.#ends.length = first;
  }

  #colon(i: number): number {
    i = this.blank(i);
    if (this.#text.charCodeAt(i) !== 58) this.#unexpected(i);
    return this.blank(i + 1);
  }

  /** Scans the key whose quote is at `i`, refuses a second one of the same name, answers the index of its closing quote. */
  #key(i: number): number {
    const text = this.#text;
    if (text.charCodeAt(i) !== QUOTE) this.#unexpected(i);
    const start = i + 1;
    let hash = 0;
    let end = start;
    const length = text.length;
    for (; end < length; end += 1) {
      const c = text.charCodeAt(end);
      if (c === QUOTE || c === BACKSLASH || c < 32) break;
      hash = (Math.imul(hash, 31) + c) | 0;
    }
    this.#keyEscaped = false;
    if (text.charCodeAt(end) !== QUOTE) {
      end = this.#string(start);
      this.#keyEscaped = true;
      hash = 0;
      const decoded = this.#decode(start, end);
      for (let at = 0; at < decoded.length; at += 1) hash = (Math.imul(hash, 31) + decoded.charCodeAt(at)) | 0;
    }
    this.#keyHash = hash;
    const { maxKeyBytes } = this.#limits;
    if ((end - start) * 3 > maxKeyBytes && Buffer.byteLength(this.#decode(start, end)) > maxKeyBytes) {
      this.#exceed('key_too_long');
    }
    this.#remember(start, end);
    return end;
  }

  #remember(start: number, end: number): void {
    const depth = this.#open.length - 1;
    const first = this.#open[depth] ?? 0;
    const hashes = this.#hashes;
    const count = hashes.length - first;
    let set = this.#sets[depth];
    if (set === undefined && count < LINEAR_KEYS) {
      const hash = this.#keyHash;
      for (let at = first; at < hashes.length; at += 1) {
        if (
          hashes[at] === hash &&
          this.#decode(this.#starts[at] ?? 0, this.#ends[at] ?? 0) === this.#decode(start, end)
        ) {
          throw new MalformedJson('duplicate_key', start);
        }
      }
      hashes.push(hash);
      this.#starts.push(start);
      this.#ends.push(end);
      return;
    }
    if (set === undefined) {
      set = new Set();
      for (let at = first; at < hashes.length; at += 1) {
        set.add(this.#decode(this.#starts[at] ?? 0, this.#ends[at] ?? 0));
      }
      this.#sets[depth] = set;
    }
    const size = set.size;
    if (set.add(this.#decode(start, end)).size === size) throw new MalformedJson('duplicate_key', start);
  }

  /** The string between two quotes, escapes resolved. */
  #decode(start: number, end: number): string {
    const piece = this.#text.slice(start, end);
    return piece.includes('\\') ? (JSON.parse(`"${piece}"`) as string) : piece;
  }

  /** Scans a string's content from `i` on; answers the index of its closing quote. */
  #string(i: number): number {
    const text = this.#text;
    const length = text.length;
    for (; i < length; i += 1) {
      const c = text.charCodeAt(i);
      if (c === QUOTE) return i;
      if (c === BACKSLASH) i = this.#escape(i);
      else if (c < 32) throw new MalformedJson('control_character', i);
    }
    throw new MalformedJson('unexpected_end', length);
  }

  /** Scans the escape whose backslash is at `i`; answers the index of its last character. */
  #escape(i: number): number {
    const text = this.#text;
    const c = text.charCodeAt(i + 1);
    if (c === 117) {
      const unit = this.#hex4(i + 2);
      if (unit < 0xd800 || unit > 0xdfff) return i + 5;
      const low = unit < 0xdc00 && text.startsWith('\\u', i + 6) ? this.#hex4(i + 8) : 0;
      if (low < 0xdc00 || low > 0xdfff) throw new MalformedJson('lone_surrogate', i);
      return i + 11;
    }
    // " \ / b f n r t
    if (c === 34 || c === 92 || c === 47 || c === 98 || c === 102 || c === 110 || c === 114 || c === 116) return i + 1;
    throw new MalformedJson(i + 1 >= text.length ? 'unexpected_end' : 'bad_escape', i);
  }

  #hex4(i: number): number {
    let unit = 0;
    for (let at = i; at < i + 4; at += 1) {
      const c = this.#text.charCodeAt(at);
      let digit = -1;
      if (c >= 48 && c <= 57) digit = c - 48;
      else if ((c >= 65 && c <= 70) || (c >= 97 && c <= 102)) digit = (c | 32) - 87;
      if (digit < 0) throw new MalformedJson(at >= this.#text.length ? 'unexpected_end' : 'bad_escape', at);
      unit = unit * 16 + digit;
    }
    return unit;
  }

  #digits(i: number): number {
    const text = this.#text;
    const start = i;
    for (;;) {
      const c = text.charCodeAt(i);
      if (c >= 48 && c <= 57) i += 1;
      else break;
    }
    if (i === start) throw new MalformedJson(i >= text.length ? 'unexpected_end' : 'bad_number', i);
    return i;
  }

  #number(i: number): number {
    const text = this.#text;
    const start = i;
    if (text.charCodeAt(i) === 45) i += 1;
    if (text.charCodeAt(i) === 48) {
      i += 1;
      const c = text.charCodeAt(i);
      if (c >= 48 && c <= 57) throw new MalformedJson('bad_number', i);
    } else i = this.#digits(i);
    if (i - start > this.#limits.maxIntegerDigits) this.#exceed('number_out_of_range');
    let real = false;
    if (text.charCodeAt(i) === 46) {
      real = true;
      i = this.#digits(i + 1);
    }
    const e = text.charCodeAt(i);
    if (e === 101 || e === 69) {
      const sign = text.charCodeAt(i + 1);
      i = this.#digits(sign === 43 || sign === 45 ? i + 2 : i + 1);
      if (!Number.isFinite(Number(text.slice(start, i)))) this.#exceed('number_out_of_range');
    } else if (real && i - start > 300 && !Number.isFinite(Number(text.slice(start, i)))) {
      this.#exceed('number_out_of_range');
    }
    return i;
  }

  #word(i: number, word: string): number {
    if (!this.#text.startsWith(word, i)) this.#unexpected(i);
    return i + word.length;
  }

  #exceed(reason: ExcessReason): void {
    if (this.excess === undefined) this.excess = reason;
  }

  #unexpected(i: number): never {
    throw new MalformedJson(i >= this.#text.length ? 'unexpected_end' : 'unexpected_character', i);
  }
}

/**
 * Checks that `text` is one JSON value within `limits`, blanks around it allowed.
 * @throws MalformedJson when it is not JSON; answers the exceeded limit, or undefined when all is well.
 */
export function checkJson(text: string, limits: JsonLimits): ExcessReason | undefined {
  const scanner = new JsonScanner(limits);
  scanner.begin(text, limits);
  const end = scanner.blank(scanner.value(scanner.blank(0), 1));
  if (end !== text.length) throw new MalformedJson('trailing_data', end);
  return scanner.excess;
}
