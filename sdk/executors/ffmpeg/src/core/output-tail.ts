/**
 * Keeps the beginning or the end of a byte stream in bounded memory and gives it out as text.
 * A cut never falls inside a UTF-8 character; bytes that are no UTF-8 become U+FFFD.
 */

/** Keeps the last `limit` bytes of what is fed. Memory: at most twice the limit. */
export class TailBuffer {
  #chunks: Uint8Array[] = [];
  #held = 0;
  /** Bytes ever fed. */
  total = 0;

  constructor(readonly limit: number) {}

  feed(chunk: Uint8Array): void {
    this.total += chunk.length;
    // A copy, so that a slice of a big socket buffer does not keep the whole of it alive.
    this.#chunks.push(chunk.slice(Math.max(0, chunk.length - this.limit)));
    this.#held += Math.min(chunk.length, this.limit);
    if (this.#held > this.limit * 2 || this.#chunks.length > 1024) {
      const kept = this.bytes();
      this.#chunks = [kept];
      this.#held = kept.length;
    }
  }

  bytes(): Uint8Array {
    const all = join(this.#chunks);
    return all.length > this.limit ? all.slice(all.length - this.limit) : all;
  }

  get truncated(): boolean {
    return this.total > this.limit;
  }
}

/** Keeps the first `limit` bytes of what is fed and counts the rest. */
export class HeadBuffer {
  #chunks: Uint8Array[] = [];
  #held = 0;
  /** Bytes ever fed. */
  total = 0;

  constructor(readonly limit: number) {}

  feed(chunk: Uint8Array): void {
    this.total += chunk.length;
    const room = this.limit - this.#held;
    if (room <= 0) return;
    const part = chunk.slice(0, room);
    this.#chunks.push(part);
    this.#held += part.length;
  }

  bytes(): Uint8Array {
    if (this.#chunks.length > 1) this.#chunks = [join(this.#chunks)];
    return this.#chunks[0] ?? new Uint8Array(0);
  }

  get truncated(): boolean {
    return this.total > this.limit;
  }
}

/** Drops the continuation bytes a cut left at the front: at most three. */
export function alignStart(bytes: Uint8Array): Uint8Array {
  let from = 0;
  while (from < 3 && from < bytes.length && ((bytes[from] ?? 0) & 0xc0) === 0x80) from += 1;
  return bytes.subarray(from);
}

/** Drops an unfinished character a cut left at the end: at most three bytes. */
export function alignEnd(bytes: Uint8Array): Uint8Array {
  for (let back = 1; back <= 3 && back <= bytes.length; back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needs > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}

/**
 * Writes real paths the way the session sees them: `<root>/a.mp4` → `a.mp4`, the root itself → `.`. Longest root first. Where a root is only
 * the middle of something longer (`https://host/session/1`), it is left alone.
 */
export function relativePaths(text: string, roots: readonly string[]): string {
  let out = text;
  for (const root of [...roots].filter((each) => each.length > 1).sort((a, b) => b.length - a.length)) {
    const literal = root.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
    out = out
      .replace(new RegExp(`(?<![\\w.-])${literal}/`, 'g'), '')
      .replace(new RegExp(`(?<![\\w.-])${literal}(?![\\w.-])`, 'g'), '.');
  }
  return out;
}

function join(chunks: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const chunk of chunks) length += chunk.length;
  const out = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    out.set(chunk, at);
    at += chunk.length;
  }
  return out;
}
