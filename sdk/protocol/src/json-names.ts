/**
 * The names of all objects that are open while a text is walked over, and whether one comes twice in its object. They are compared by a hash first: one after
 * the other while there are few, through a table when there are many. The hash is another one in each process, so that a peer cannot choose names that fall
 * together. No string is made of a name unless two have the same hash: a frame may have half a million of them.
 */

/** An object with more names than this has a table of them. */
const LINEAR_NAMES = 12;
const FIRST_SLOTS = 64;
/** Longer stacks are let go with the text that needed them. */
const KEPT_NAMES = 4096;
const SEED = (Math.random() * 2 ** 32) | 0;
const FACTOR = (Math.random() * 2 ** 30) | 0x40000001;

/** The hash of a name with no bytes. */
export const EMPTY_NAME: number = SEED;

/** The hash of a name with one byte more. */
export function hashed(hash: number, byte: number): number {
  return Math.imul(hash ^ byte, FACTOR);
}

/** What an escape of one letter stands for, by that letter; those that stand for themselves are not in it. */
const ESCAPES: Readonly<Record<number, number>> = { 98: 8, 102: 12, 110: 10, 114: 13, 116: 9 };

/** The hash of a name with escapes, whose grammar was found good: that of the same name without them. */
export function hashOfEscaped(bytes: Uint8Array, start: number, end: number): number {
  let hash = EMPTY_NAME;
  for (let i = start; i < end; i += 1) {
    const c = bytes[i] ?? 0;
    const letter = bytes[i + 1] ?? 0;
    if (c !== 92) hash = hashed(hash, c);
    else if (letter !== 117) {
      hash = hashed(hash, ESCAPES[letter] ?? letter);
      i += 1;
    } else {
      let code = hexAt(bytes, i + 2);
      i += 5;
      if (code >= 0xd800 && code < 0xdc00) {
        code = 0x10000 + ((code - 0xd800) << 10) + hexAt(bytes, i + 3) - 0xdc00;
        i += 6;
      }
      hash = hashOfCode(hash, code);
    }
  }
  return hash;
}

function hexAt(bytes: Uint8Array, at: number): number {
  let value = 0;
  for (let i = at; i < at + 4; i += 1) {
    const c = bytes[i] ?? 0;
    value = value * 16 + (c <= 57 ? c - 48 : (c | 32) - 87);
  }
  return value;
}

/** Adds a code point as it is in UTF-8. */
function hashOfCode(hash: number, code: number): number {
  if (code < 0x80) return hashed(hash, code);
  const last = 0x80 | (code & 63);
  if (code < 0x800) return hashed(hashed(hash, 0xc0 | (code >> 6)), last);
  const third = 0x80 | ((code >> 6) & 63);
  if (code < 0x10000) return hashed(hashed(hashed(hash, 0xe0 | (code >> 12)), third), last);
  return hashed(hashed(hashed(hashed(hash, 0xf0 | (code >> 18)), 0x80 | ((code >> 12) & 63)), third), last);
}

/** Twice as many integers in one piece of memory. */
export function grown(stack: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(stack.length * 2);
  larger.set(stack);
  return larger;
}

/** A stack of names; those of one object are next to each other, because what is inside it is closed before its next name. */
export class JsonNames {
  /** How many there are. */
  count = 0;
  private bytes: Uint8Array = new Uint8Array(0);
  private hashes = new Int32Array(FIRST_SLOTS);
  private starts = new Int32Array(FIRST_SLOTS);
  private ends = new Int32Array(FIRST_SLOTS);
  /** By depth: where each hash of an object with many names is found, as index + 1; undefined where there is none. */
  private readonly tables: (Int32Array<ArrayBuffer> | undefined)[] = [];

  /** Begins a new text. */
  begin(bytes: Uint8Array): void {
    this.bytes = bytes;
    this.count = 0;
    if (this.tables.length > 0) this.tables.length = 0;
    if (this.hashes.length <= KEPT_NAMES) return;
    this.hashes = new Int32Array(FIRST_SLOTS);
    this.starts = new Int32Array(FIRST_SLOTS);
    this.ends = new Int32Array(FIRST_SLOTS);
  }

  /** A container was opened at this depth. */
  open(depth: number): void {
    if (this.tables.length > depth) this.tables[depth] = undefined;
  }

  /** Adds the name between two quotes to the object at `depth`, whose first name is number `first`. False when the object has it. */
  add(hash: number, start: number, end: number, first: number, depth: number): boolean {
    const { hashes, count } = this;
    if (count - first < LINEAR_NAMES) {
      for (let at = first; at < count; at += 1) if (hashes[at] === hash && this.isSame(at, start, end)) return false;
    } else if (this.isInTable(hash, start, end, first, depth)) return false;
    if (count === hashes.length) {
      this.hashes = grown(hashes);
      this.starts = grown(this.starts);
      this.ends = grown(this.ends);
    }
    this.hashes[count] = hash;
    this.starts[count] = start;
    this.ends[count] = end;
    this.count = count + 1;
    return true;
  }

  /** Looks a name up and makes room for it: the caller adds it. */
  private isInTable(hash: number, start: number, end: number, first: number, depth: number): boolean {
    const { hashes, count } = this;
    let table = this.tables[depth];
    if (table === undefined || (count - first) * 2 >= table.length) {
      table = new Int32Array(table === undefined ? FIRST_SLOTS : table.length * 2);
      while (this.tables.length < depth) this.tables.push(undefined);
      this.tables[depth] = table;
      for (let at = first; at < count; at += 1) {
        let slot = slotOf(hashes[at] ?? 0, table.length);
        while (table[slot] !== 0) slot = (slot + 1) & (table.length - 1);
        table[slot] = at + 1;
      }
    }
    let slot = slotOf(hash, table.length);
    for (let at = table[slot] ?? 0; at !== 0; at = table[slot] ?? 0) {
      if (hashes[at - 1] === hash && this.isSame(at - 1, start, end)) return true;
      slot = (slot + 1) & (table.length - 1);
    }
    table[slot] = count + 1;
    return false;
  }

  private isSame(at: number, start: number, end: number): boolean {
    return decodeString(this.bytes, this.starts[at] ?? 0, this.ends[at] ?? 0) === decodeString(this.bytes, start, end);
  }
}

/** The upper bits decide: they depend on every byte. `slots` is a power of two. */
function slotOf(hash: number, slots: number): number {
  return Math.imul(hash, 0x9e3779b1) >>> (Math.clz32(slots) + 1);
}

/** The string between two quotes, escapes resolved. */
export function decodeString(bytes: Uint8Array, start: number, end: number): string {
  const piece = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString('utf8');
  return piece.includes('\\') ? (JSON.parse(`"${piece}"`) as string) : piece;
}
