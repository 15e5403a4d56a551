/**
 * One connection: bytes in, messages out. Everything written during a turn leaves in one write. A peer that does not read is first no longer read
 * from, then, when what waits for it exceeds a bound, cut off; nobody else notices.
 */
import type { Socket } from 'node:net';
import { encodeFrames, FrameReader } from '@reelhost/protocol';

/** Bytes waiting to be read by the peer above which its own requests wait. */
const PAUSE_BYTES = 1_048_576;

/** How long an ended connection may take to read its last message. */
const LINGER_MS = 1000;

/** Limits that every connection has. */
export interface ConnectionLimits {
  readonly maxFrameBytes: number;
  /** Bytes waiting to be read by the peer above which it is cut off. */
  readonly maxUnreadBytes: number;
}

/** A connection as the broker serves it. */
export class Connection {
  readonly id: number;
  reader: FrameReader;
  /** The turn in which its frames were last taken, and how many of them. */
  turn = -1;
  framesTaken = 0;
  readonly #socket: Socket;
  readonly #maxUnreadBytes: number;
  #texts: string[] = [];
  #reading = true;
  #congested = false;
  #ending = false;

  /** `onDrained` is called when a congested peer has read enough. */
  constructor(id: number, socket: Socket, limits: ConnectionLimits, onDrained: () => void) {
    this.id = id;
    this.#maxUnreadBytes = limits.maxUnreadBytes;
    this.#socket = socket;
    this.reader = new FrameReader(limits.maxFrameBytes);
    socket.on('drain', () => {
      if (this.#congested) this.resume();
      this.#congested = false;
      onDrained();
    });
  }

  /** Whether so much waits for the peer that its own requests have to wait. */
  get congested(): boolean {
    return this.#congested;
  }

  /** Bytes waiting to be read by the peer. */
  get waitingBytes(): number {
    return this.#socket.destroyed ? 0 : this.#socket.writableLength;
  }

  /** Bytes that it keeps in memory: received and not taken, and waiting to be read by the peer. */
  get heldBytes(): number {
    return this.reader.pendingBytes + this.waitingBytes;
  }

  /** Takes nothing from the socket for now. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    if (this.#reading) this.#socket.resume();
  }

  /** Whether more is read from it; not when it has broken the protocol or is being closed. */
  get reading(): boolean {
    return this.#reading;
  }

  /** Reads nothing more; what was received and not taken is let go at once. */
  stopReading(): void {
    this.#reading = false;
    this.#socket.pause();
    this.reader = new FrameReader(this.reader.maxFrameBytes);
  }

  /** Puts a message into this turn's write. True when it is the first one. */
  queue(text: string): boolean {
    return this.#texts.push(text) === 1;
  }

  /** Writes what was queued. False when the peer is so far behind that it was cut off. */
  flush(): boolean {
    if (this.#texts.length === 0 || this.#socket.destroyed) return true;
    const bytes = encodeFrames(this.#texts);
    this.#texts = [];
    this.#socket.write(bytes);
    const waiting = this.#socket.writableLength;
    if (waiting > this.#maxUnreadBytes) {
      this.destroy();
      return false;
    }
    if (waiting > PAUSE_BYTES) {
      this.#congested = true;
      this.#socket.pause();
    }
    if (this.#ending) this.#socket.end();
    return true;
  }

  /** Reads nothing more and ends when what is queued was sent. */
  end(): void {
    if (this.#ending) return;
    this.#ending = true;
    this.stopReading();
    if (this.#texts.length === 0) this.#socket.end();
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref();
  }

  destroy(): void {
    this.stopReading();
    this.#ending = true;
    this.#socket.destroy();
  }
}
