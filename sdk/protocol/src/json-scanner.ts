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
import { escapeEnd, isOutOfRange, isPlain, MalformedJson, numberEnd } from './json-tokens.js';
import type { JsonLimits } from './limits.js';

/** Which limit a well-formed text exceeds. */
export type ExcessReason = 'too_deep' | 'too_many_values' | 'key_too_long' | 'number_out_of_range';

const LINEAR_KEYS = 12;
const QUOTE = 34;
const BACKSLASH = 92;
/** From this length on a string is left to the engine's own reader, which is faster per character but dearer per call. */
const LONG_STRING = 48;
const IN_ARRAY = -1;

/** A stack of integers in one piece of memory. */
function grown(stack: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(stack.length * 2);
  larger.set(stack);
  return larger;
}

/** A reusable scanner; one instance serves one text at a time. Fields are private to TypeScript only: `#` costs on this path. */
export class JsonScanner {
  /** The first limit that was exceeded, or undefined. */
  excess: ExcessReason | undefined;
  private text = '';
  private limits: JsonLimits;
  private values = 0;
  private nextBackslash = -1;
  // One entry per open container: IN_ARRAY, or the index of the object's first key in the key stacks.
  private open = new Int32Array(64);
  private depth = 0;
  /** Objects with many keys have a set of them; undefined where there is none. */
  private readonly sets: (Set<string> | undefined)[] = [];
  // The keys of all open objects, as a stack: hash, start and end (without quotes).
  private hashes = new Int32Array(64);
  private starts = new Int32Array(64);
  private ends = new Int32Array(64);
  private keys = 0;
  private keyEscaped = false;

  constructor(limits: JsonLimits) {
    this.limits = limits;
  }

  /** Begins a new text; forgets everything of the last one. */
  begin(text: string, limits: JsonLimits = this.limits): void {
    this.text = text;
    this.limits = limits;
    this.values = 0;
    this.excess = undefined;
    this.depth = 0;
    this.keys = 0;
    this.nextBackslash = -2;
  }

  /** Lets go of the last text, so that it can be collected. */
  end(): void {
    this.text = '';
    this.sets.length = 0;
  }

  /** Skips blanks from `i` on and answers the first other index. */
  blank(i: number): number {
    const { text } = this;
    for (;;) {
      const c = text.charCodeAt(i);
      if (c === 32 || c === 10 || c === 13 || c === 9) i += 1;
      else return i;
    }
  }

  /**
   * Scans the object that begins at `i` (its brace), noting each member's key in `names`, and where its value begins and ends in
   * `bounds`. The object is level 1. Answers the index after the closing brace.
   */
  object(i: number, names: string[], bounds: number[]): number {
    const { text } = this;
    this.values = 1;
    this.push(0);
    i = this.blank(i + 1);
    if (text.charCodeAt(i) === 125) {
      this.depth -= 1;
      return i + 1;
    }
    for (;;) {
      const keyStart = i + 1;
      const keyEnd = this.key(i);
      names.push(this.keyEscaped ? this.decode(keyStart, keyEnd) : text.slice(keyStart, keyEnd));
      const start = this.colon(keyEnd + 1);
      const end = this.value(start, 2);
      bounds.push(start, end);
      i = this.blank(end);
      const c = text.charCodeAt(i);
      if (c === 44) i = this.blank(i + 1);
      else if (c === 125) {
        this.depth -= 1;
        return i + 1;
      } else this.unexpected(i);
    }
  }

  /** Scans the value that begins at `i`, itself at nesting level `level`; answers the index after it. */
  value(i: number, level: number): number {
    const { text } = this;
    const { maxDepth, maxValues } = this.limits;
    const floor = this.depth;
    const deepest = maxDepth - level + floor;
    for (;;) {
      // A value begins at i.
      this.values += 1;
      if (this.values > maxValues) this.exceed('too_many_values');
      if (this.depth > deepest) this.exceed('too_deep');
      const c = text.charCodeAt(i);
      if (c === QUOTE) i = this.string(i + 1) + 1;
      else if (c === 123) {
        i = this.blank(i + 1);
        if (text.charCodeAt(i) !== 125) {
          this.push(this.keys);
          i = this.colon(this.key(i) + 1);
          continue;
        }
        i += 1;
      } else if (c === 91) {
        i = this.blank(i + 1);
        if (text.charCodeAt(i) !== 93) {
          this.push(IN_ARRAY);
          continue;
        }
        i += 1;
      } else if (c === 45 || (c >= 48 && c <= 57)) i = this.number(i);
      else if (c === 116) i = this.word(i, 'true');
      else if (c === 102) i = this.word(i, 'false');
      else if (c === 110) i = this.word(i, 'null');
      else this.unexpected(i);

      // A value has ended before i: close containers, or go to the next member.
      for (;;) {
        if (this.depth === floor) return i;
        let next = text.charCodeAt(i);
        if (next <= 32) {
          i = this.blank(i);
          next = text.charCodeAt(i);
        }
        const first = this.open[this.depth - 1] ?? IN_ARRAY;
        if (next === 44) {
          i += 1;
          if (text.charCodeAt(i) <= 32) i = this.blank(i);
          if (first !== IN_ARRAY) i = this.colon(this.key(i) + 1);
          break;
        }
        if (next !== (first === IN_ARRAY ? 93 : 125)) this.unexpected(i);
        if (first !== IN_ARRAY) this.keys = first;
        this.depth -= 1;
        i += 1;
      }
    }
  }

  private push(first: number): void {
    if (this.depth === this.open.length) this.open = grown(this.open);
    this.open[this.depth] = first;
    this.depth += 1;
    if (this.sets.length >= this.depth) this.sets[this.depth - 1] = undefined;
  }

  private colon(i: number): number {
    const { text } = this;
    if (text.charCodeAt(i) !== 58) {
      i = this.blank(i);
      if (text.charCodeAt(i) !== 58) this.unexpected(i);
    }
    i += 1;
    return text.charCodeAt(i) <= 32 ? this.blank(i) : i;
  }

  /** Scans the key whose quote is at `i`, refuses a second one of the same name, answers the index of its closing quote. */
  private key(i: number): number {
    const { text } = this;
    if (text.charCodeAt(i) !== QUOTE) this.unexpected(i);
    const start = i + 1;
    let hash = 0;
    let end = start;
    let c = text.charCodeAt(end);
    while (c !== QUOTE && c !== BACKSLASH && c >= 32) {
      hash = (Math.imul(hash, 31) + c) | 0;
      end += 1;
      c = text.charCodeAt(end);
    }
    this.keyEscaped = false;
    if (c !== QUOTE) {
      end = this.string(start);
      this.keyEscaped = true;
      hash = 0;
      const decoded = this.decode(start, end);
      for (let at = 0; at < decoded.length; at += 1) hash = (Math.imul(hash, 31) + decoded.charCodeAt(at)) | 0;
    }
    const { maxKeyBytes } = this.limits;
    if ((end - start) * 3 > maxKeyBytes && Buffer.byteLength(this.decode(start, end)) > maxKeyBytes) {
      this.exceed('key_too_long');
    }
    this.remember(hash, start, end);
    return end;
  }

  private remember(hash: number, start: number, end: number): void {
    const { hashes, keys, depth } = this;
    const first = this.open[depth - 1] ?? 0;
    if (keys - first < LINEAR_KEYS) {
      for (let at = first; at < keys; at += 1) {
        if (hashes[at] === hash && this.keyAt(at) === this.decode(start, end)) {
          throw new MalformedJson('duplicate_key', start);
        }
      }
      if (keys === hashes.length) {
        this.hashes = grown(hashes);
        this.starts = grown(this.starts);
        this.ends = grown(this.ends);
      }
      this.hashes[keys] = hash;
      this.starts[keys] = start;
      this.ends[keys] = end;
      this.keys = keys + 1;
      return;
    }
    let set = this.sets[depth - 1];
    if (set === undefined) {
      set = new Set();
      for (let at = first; at < keys; at += 1) set.add(this.keyAt(at));
      while (this.sets.length < depth) this.sets.push(undefined);
      this.sets[depth - 1] = set;
    }
    const { size } = set;
    if (set.add(this.decode(start, end)).size === size) throw new MalformedJson('duplicate_key', start);
  }

  private keyAt(at: number): string {
    return this.decode(this.starts[at] ?? 0, this.ends[at] ?? 0);
  }

  /** The string between two quotes, escapes resolved. */
  private decode(start: number, end: number): string {
    const piece = this.text.slice(start, end);
    return piece.includes('\\') ? (JSON.parse(`"${piece}"`) as string) : piece;
  }

  /** Scans a string's content from `i` on; answers the index of its closing quote. */
  private string(i: number): number {
    const { text } = this;
    const stop = i + LONG_STRING;
    for (; i < stop; i += 1) {
      const c = text.charCodeAt(i);
      if (c === QUOTE) return i;
      if (c === BACKSLASH) i = escapeEnd(text, i);
      else if (!(c >= 32)) this.control(i);
    }
    return this.longString(i);
  }

  /** The same for what follows a long beginning: where there is no backslash, the engine judges the rest at once. */
  private longString(i: number): number {
    const { text } = this;
    for (;;) {
      const quote = text.indexOf('"', i);
      if (quote < 0) return this.plainString(i);
      if (this.nextBackslash !== -1 && this.nextBackslash < i) this.nextBackslash = text.indexOf('\\', i);
      const backslash = this.nextBackslash;
      const end = backslash === -1 || backslash > quote ? quote : backslash;
      if (end - i < LONG_STRING || !isPlain(text, i, end)) return this.plainString(i);
      if (end === quote) return quote;
      i = escapeEnd(text, end) + 1;
    }
  }

  private plainString(i: number): number {
    const { text } = this;
    const { length } = text;
    for (; i < length; i += 1) {
      const c = text.charCodeAt(i);
      if (c === QUOTE) return i;
      if (c === BACKSLASH) i = escapeEnd(text, i);
      else if (c < 32) this.control(i);
    }
    throw new MalformedJson('unexpected_end', length);
  }

  private control(i: number): never {
    throw new MalformedJson(i >= this.text.length ? 'unexpected_end' : 'control_character', i);
  }

  private number(i: number): number {
    const end = numberEnd(this.text, i);
    if (isOutOfRange(this.text, i, end, this.limits.maxIntegerDigits)) this.exceed('number_out_of_range');
    return end;
  }

  private word(i: number, word: string): number {
    if (!this.text.startsWith(word, i)) this.unexpected(i);
    return i + word.length;
  }

  private exceed(reason: ExcessReason): void {
    if (this.excess === undefined) this.excess = reason;
  }

  private unexpected(i: number): never {
    throw new MalformedJson(i >= this.text.length ? 'unexpected_end' : 'unexpected_character', i);
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
