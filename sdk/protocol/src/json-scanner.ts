/**
 * Walks one JSON text exactly once and says whether it is what the protocol allows, without building a value from it.
 *
 * It decides: grammar (RFC 8259, stricter than most readers: no duplicate keys, no half surrogate pairs) and the
 * limits of `JsonLimits`. A breach of the grammar throws `MalformedJson`. A breach of a limit in otherwise good JSON is
 * recorded in `excess` and the walk goes on, so that the caller can still find out which request it was and answer it.
 * That the bytes are UTF-8 is for the caller to see to when `isAscii` says that there is something to see to.
 *
 * It must never recurse (depth comes from the peer) and never allocate per value: the broker runs it on each frame. It works on bytes, in memory of its own and
 * with a zero after them: several times as fast as on the characters of a string.
 */
import { decodeString, EMPTY_NAME, grown, hashed, hashOfEscaped, JsonNames } from './json-names.js';
import { escapeEnd, isOutOfRange, MalformedJson, numberEnd } from './json-tokens.js';
import { JSON_LIMITS, type JsonLimits } from './limits.js';

/** Which limit a well-formed text exceeds. */
export type ExcessReason = 'too_deep' | 'too_many_values' | 'key_too_long' | 'number_out_of_range';

const QUOTE = 34;
const BACKSLASH = 92;
const IN_ARRAY = -1;
/** A text that is longer gets memory for itself, which is let go with it. */
const OWN_BYTES = 65_536;

/** A reusable scanner; one instance serves one text at a time. Fields are private to TypeScript only: `#` costs on this path. */
export class JsonScanner {
  /** The first limit that was exceeded, or undefined. */
  excess: ExcessReason | undefined;
  private readonly own = new Uint8Array(OWN_BYTES + 1);
  private bytes = this.own;
  private length = 0;
  private limits: JsonLimits = JSON_LIMITS;
  private values = 0;
  /** All bytes of strings, one over the other: the highest bit says whether one was beyond ASCII. */
  private seen = 0;
  // One entry per open container: IN_ARRAY, or the index of the object's first key in the key stacks.
  private open = new Int32Array(64);
  private depth = 0;
  private readonly names = new JsonNames();
  private keyEscaped = false;

  /** Begins a new text; forgets everything of the last one. */
  begin(text: Uint8Array, limits: JsonLimits): void {
    const { length } = text;
    this.bytes = length > OWN_BYTES ? new Uint8Array(length + 1) : this.own;
    this.bytes.set(text);
    this.bytes[length] = 0;
    this.length = length;
    this.limits = limits;
    this.values = 0;
    this.seen = 0;
    this.excess = undefined;
    this.depth = 0;
    this.names.begin(this.bytes);
  }

  /** Lets go of the last text, so that it can be collected. */
  end(): void {
    this.bytes = this.own;
    this.names.begin(this.own);
  }

  /** Whether what was walked over had no byte beyond ASCII. */
  get isAscii(): boolean {
    return this.seen < 128;
  }

  /** Skips blanks from `i` on and answers the first other index. */
  blank(i: number): number {
    const { bytes } = this;
    for (;;) {
      const c = bytes[i];
      if (c === 32 || c === 10 || c === 13 || c === 9) i += 1;
      else return i;
    }
  }

  /** Whether a text ends at `i`, but for blanks. */
  isEnd(i: number): boolean {
    return this.blank(i) === this.length;
  }

  /**
   * Scans the object that begins at `i` (its brace), noting four indices of each member in `members`: start and end of its key, without
   * quotes (start inverted, `~start`, when the key has escapes), start and end of its value. The object is level 1. Answers the index after the closing brace.
   */
  object(i: number, members: number[]): number {
    const { bytes } = this;
    this.values = 1;
    this.push(0);
    i = this.blank(i + 1);
    if (bytes[i] === 125) {
      this.depth -= 1;
      return i + 1;
    }
    for (;;) {
      const keyStart = i + 1;
      const keyEnd = this.key(i);
      const escaped = this.keyEscaped;
      const start = this.colon(keyEnd + 1);
      i = this.value(start, 2);
      members.push(escaped ? ~keyStart : keyStart, keyEnd, start, i);
      i = this.blank(i);
      const c = bytes[i];
      if (c === 44) i = this.blank(i + 1);
      else if (c === 125) {
        this.depth -= 1;
        return i + 1;
      } else this.unexpected(i);
    }
  }

  /** Scans the value that begins at `i`, itself at nesting level `level`; answers the index after it. */
  value(i: number, level: number): number {
    const { bytes } = this;
    const { maxDepth, maxValues } = this.limits;
    const floor = this.depth;
    const deepest = maxDepth - level + floor;
    for (;;) {
      // A value begins at i.
      this.values += 1;
      if (this.values > maxValues) this.exceed('too_many_values');
      if (this.depth > deepest) this.exceed('too_deep');
      const c = bytes[i] as number;
      if (c === QUOTE) i = this.string(i + 1) + 1;
      else if (c === 123) {
        i = this.blank(i + 1);
        if (bytes[i] !== 125) {
          this.push(this.names.count);
          i = this.colon(this.key(i) + 1);
          continue;
        }
        i += 1;
      } else if (c === 91) {
        i = this.blank(i + 1);
        if (bytes[i] !== 93) {
          this.push(IN_ARRAY);
          continue;
        }
        i += 1;
      } else if (c === 45 || (c >= 48 && c <= 57)) i = this.number(i);
      else i = this.word(i, c);

      // A value has ended before i: close containers, or go to the next member.
      for (;;) {
        if (this.depth === floor) return i;
        let next = bytes[i] as number;
        if (next <= 32) {
          i = this.blank(i);
          next = bytes[i] as number;
        }
        const first = this.open[this.depth - 1] ?? IN_ARRAY;
        if (next === 44) {
          i += 1;
          if ((bytes[i] as number) <= 32) i = this.blank(i);
          if (first !== IN_ARRAY) i = this.colon(this.key(i) + 1);
          break;
        }
        if (next !== (first === IN_ARRAY ? 93 : 125)) this.unexpected(i);
        if (first !== IN_ARRAY) this.names.count = first;
        this.depth -= 1;
        i += 1;
      }
    }
  }

  private push(first: number): void {
    if (this.depth === this.open.length) this.open = grown(this.open);
    this.open[this.depth] = first;
    this.names.open(this.depth);
    this.depth += 1;
  }

  private colon(i: number): number {
    const { bytes } = this;
    if (bytes[i] !== 58) {
      i = this.blank(i);
      if (bytes[i] !== 58) this.unexpected(i);
    }
    i += 1;
    return (bytes[i] as number) <= 32 ? this.blank(i) : i;
  }

  /** Scans the key whose quote is at `i`, refuses a second one of the same name, answers the index of its closing quote. */
  private key(i: number): number {
    const { bytes } = this;
    if (bytes[i] !== QUOTE) this.unexpected(i);
    const start = i + 1;
    let hash = EMPTY_NAME;
    let end = start;
    let seen = 0;
    let c = bytes[end] as number;
    while (c !== QUOTE && c !== BACKSLASH && c >= 32) {
      hash = hashed(hash, c);
      seen |= c;
      end += 1;
      c = bytes[end] as number;
    }
    this.seen |= seen;
    this.keyEscaped = false;
    if (c !== QUOTE) {
      end = this.string(start);
      this.keyEscaped = true;
      hash = hashOfEscaped(bytes, start, end);
    }
    const { maxKeyBytes } = this.limits;
    if (end - start > maxKeyBytes && Buffer.byteLength(decodeString(bytes, start, end)) > maxKeyBytes) {
      this.exceed('key_too_long');
    }
    const level = this.depth - 1;
    if (!this.names.add(hash, start, end, this.open[level] ?? 0, level))
      throw new MalformedJson('duplicate_key', start);
    return end;
  }

  /** Scans a string's content from `i` on; answers the index of its closing quote. */
  private string(i: number): number {
    const { bytes } = this;
    let seen = 0;
    for (;;) {
      let c = bytes[i] as number;
      while (c !== QUOTE && c !== BACKSLASH && c >= 32) {
        seen |= c;
        i += 1;
        c = bytes[i] as number;
      }
      if (c === QUOTE) break;
      if (c !== BACKSLASH) throw new MalformedJson(i >= this.length ? 'unexpected_end' : 'control_character', i);
      i = escapeEnd(bytes, i, this.length) + 1;
    }
    this.seen |= seen;
    return i;
  }

  private number(i: number): number {
    const end = numberEnd(this.bytes, i, this.length);
    if (isOutOfRange(this.bytes, i, end, this.limits.maxIntegerDigits)) this.exceed('number_out_of_range');
    return end;
  }

  /** Scans the true, false or null that begins with `c` at `i`. */
  private word(i: number, c: number): number {
    const { bytes } = this;
    if (c === 102) {
      if (bytes[i + 1] !== 97 || bytes[i + 2] !== 108 || bytes[i + 3] !== 115 || bytes[i + 4] !== 101)
        this.unexpected(i);
      return i + 5;
    }
    const isTrue = c === 116 && bytes[i + 1] === 114 && bytes[i + 2] === 117 && bytes[i + 3] === 101;
    const isNull = c === 110 && bytes[i + 1] === 117 && bytes[i + 2] === 108 && bytes[i + 3] === 108;
    if (!isTrue && !isNull) this.unexpected(i);
    return i + 4;
  }

  private exceed(reason: ExcessReason): void {
    if (this.excess === undefined) this.excess = reason;
  }

  private unexpected(i: number): never {
    throw new MalformedJson(i >= this.length ? 'unexpected_end' : 'unexpected_character', i);
  }
}

/** The one of this process: a walk is never interrupted. */
export const SCANNER: JsonScanner = new JsonScanner();

/**
 * Checks that `text` is one JSON value within `limits`, blanks around it allowed.
 * @throws MalformedJson when it is not JSON; answers the exceeded limit, or undefined when all is well.
 */
export function checkJson(text: string, limits: JsonLimits): ExcessReason | undefined {
  SCANNER.begin(Buffer.from(text), limits);
  try {
    const end = SCANNER.value(SCANNER.blank(0), 1);
    if (!SCANNER.isEnd(end)) throw new MalformedJson('trailing_data', SCANNER.blank(end));
    return SCANNER.excess;
  } finally {
    SCANNER.end();
  }
}
