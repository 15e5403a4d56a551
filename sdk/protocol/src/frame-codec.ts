/**
 * Frames: four bytes of unsigned big-endian length, then that many bytes of payload.
 *
 * `FrameReader` is pulled: push a chunk, then take frames until there is none. So a caller may change the limit between two
 * frames of one chunk (after `hello`), and good frames that came before a bad one are still served.
 * It must never allocate from an announced length: what it holds is at most twice what was really received, and a length over
 * the limit is refused when its header is read, before any of its body is kept.
 */
import { MAX_FRAME_BYTES, maxBufferedBytes } from './limits.js';
import { type ProtocolFault, protocolFault } from './protocol-faults.js';

const HEADER_BYTES = 4;
const EMPTY = Buffer.alloc(0);

/** Cuts a byte stream into frames. */
export class FrameReader {
  /** Set once the stream is beyond repair; from then on nothing more is read. */
  fault: ProtocolFault | undefined;
  #maxFrameBytes: number;
  // Unread bytes are #bytes[#from .. #to]; #owned says that the memory is ours and has room to grow.
  #bytes: Buffer = EMPTY;
  #from = 0;
  #to = 0;
  #owned = false;

  constructor(maxFrameBytes: number = MAX_FRAME_BYTES) {
    this.#maxFrameBytes = maxFrameBytes;
  }

  /** The limit of one payload, in bytes. */
  get maxFrameBytes(): number {
    return this.#maxFrameBytes;
  }

  /** Changes the limit; it holds from the next frame taken. */
  set maxFrameBytes(bytes: number) {
    this.#maxFrameBytes = bytes;
  }

  /** Bytes received and not yet taken as a frame: above zero while a frame is incomplete. */
  get pendingBytes(): number {
    return this.#to - this.#from;
  }

  /** Adds received bytes. The chunk may be kept until the frames in it are taken. */
  push(chunk: Uint8Array): void {
    if (this.fault !== undefined || chunk.length === 0) return;
    const pending = this.pendingBytes;
    if (pending === 0) {
      this.#bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
      this.#from = 0;
      this.#to = chunk.length;
      this.#owned = false;
      return;
    }
    if (pending > maxBufferedBytes(this.#maxFrameBytes)) {
      this.#fail(protocolFault('unread_frames'));
      return;
    }
    const needed = pending + chunk.length;
    if (!this.#owned || this.#to + chunk.length > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(this.#owned ? Math.max(needed, pending * 2) : needed);
      this.#bytes.copy(grown, 0, this.#from, this.#to);
      this.#bytes = grown;
      this.#from = 0;
      this.#to = pending;
      this.#owned = true;
    }
    this.#bytes.set(chunk, this.#to);
    this.#to += chunk.length;
  }

  /**
   * Takes the next frame's payload, or undefined when it is not complete or `fault` is set. The bytes are a view: read them
   * before the next `push`.
   */
  next(): Buffer | undefined {
    const pending = this.#to - this.#from;
    if (this.fault !== undefined || pending < HEADER_BYTES) return undefined;
    const length = this.#bytes.readUInt32BE(this.#from);
    if (length === 0) return this.#fail(protocolFault('empty_frame'));
    if (length > this.#maxFrameBytes) {
      return this.#fail(protocolFault('announced_length', `${length} bytes; the limit is ${this.#maxFrameBytes}`));
    }
    if (pending < HEADER_BYTES + length) return undefined;
    const start = this.#from + HEADER_BYTES;
    const payload = this.#bytes.subarray(start, start + length);
    this.#from = start + length;
    if (this.#from === this.#to) {
      this.#bytes = EMPTY;
      this.#from = 0;
      this.#to = 0;
      this.#owned = false;
    }
    return payload;
  }

  #fail(fault: ProtocolFault): undefined {
    this.fault = fault;
    this.#bytes = EMPTY;
    this.#from = 0;
    this.#to = 0;
    return undefined;
  }
}

/** One message text as a frame. */
export function encodeFrame(text: string): Buffer {
  return encodeFrames([text]);
}

/** Room for a header between texts. */
const GAP = '\0'.repeat(HEADER_BYTES);
/** Up to this length texts are joined and written at once. */
const JOINED_CHARACTERS = 262_144;

/** Several message texts as frames in one buffer, so that one write sends them all. */
export function encodeFrames(texts: readonly string[]): Buffer {
  let characters = 0;
  for (const text of texts) characters += HEADER_BYTES + text.length;
  if (characters <= JOINED_CHARACTERS) {
    const bytes = Buffer.from(GAP + texts.join(GAP));
    // As many bytes as characters: all of it is ASCII, and each text lies where it lay among the characters.
    if (bytes.length === characters) return withHeaders(bytes, texts);
  }
  return encodeApart(texts);
}

function withHeaders(bytes: Buffer, texts: readonly string[]): Buffer {
  let at = 0;
  for (const text of texts) {
    bytes.writeUInt32BE(text.length, at);
    at += HEADER_BYTES + text.length;
  }
  return bytes;
}

function encodeApart(texts: readonly string[]): Buffer {
  let total = 0;
  for (const text of texts) total += HEADER_BYTES + Buffer.byteLength(text);
  const bytes = Buffer.allocUnsafe(total);
  let at = 0;
  for (const text of texts) {
    const length = bytes.write(text, at + HEADER_BYTES, 'utf8');
    bytes.writeUInt32BE(length, at);
    at += HEADER_BYTES + length;
  }
  return bytes;
}
