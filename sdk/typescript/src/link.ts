/**
 * Drives one connection to a broker: the socket, the frames, the timers. What happens when is decided by core/link-machine.ts.
 *
 * Messages of one turn leave in one write. A message that breaks the protocol ends the connection and is dialled again.
 * It must never keep the process alive by itself once it is stopped.
 */
import { connect, type Socket } from 'node:net';
import {
  type Envelope,
  encodeFrames,
  FrameReader,
  JSON_LIMITS_EXTENSION,
  MAX_FRAME_BYTES,
  MAX_FRAME_BYTES_EXTENSION,
  readEnvelope,
} from '@reelhost/protocol';
import {
  IDLE_LINK,
  LINK_TIMING,
  type LinkEffect,
  type LinkInput,
  type LinkState,
  type LinkTiming,
  stepLink,
} from './core/link-machine.js';
import { BrokerError } from './errors.js';

/** What a link tells its owner. Every method is called from the event loop, never from inside a call of the owner. */
export interface LinkOwner {
  /** The socket is open: send hello. */
  greet(): void;
  /** Hello was accepted: send what must precede service, then call `prepared`. */
  prepare(): void;
  up(): void;
  down(reason: unknown): void;
  /** The link is over for good; `reason` is undefined after `stop`. */
  end(reason: unknown): void;
  message(envelope: Envelope): void;
}

/** One connection that is made again whenever it is lost. */
export class Link {
  #state: LinkState = IDLE_LINK;
  #socket: Socket | undefined;
  #reader = new FrameReader();
  #outgoing: string[] = [];
  #flushing = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #path: string;
  readonly #owner: LinkOwner;
  readonly #timing: LinkTiming;

  constructor(path: string, owner: LinkOwner, timing: LinkTiming = LINK_TIMING) {
    this.#path = path;
    this.#owner = owner;
    this.#timing = timing;
  }

  /** Where the link stands. */
  get phase(): LinkState['phase'] {
    return this.#state.phase;
  }

  /** Feeds the machine; everything that happens goes through here. */
  input(input: LinkInput): void {
    const [state, effects] = stepLink(this.#state, input, Math.random(), this.#timing);
    this.#state = state;
    for (const effect of effects) this.#perform(effect);
  }

  /** Sends a message text on the present connection; dropped when there is none. */
  send(text: string): void {
    if (this.#socket === undefined) return;
    this.#outgoing.push(text);
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => this.#flush());
  }

  /** Raises the frame limit, after hello. */
  allowLargeFrames(maxFrameBytes: number = MAX_FRAME_BYTES_EXTENSION): void {
    this.#reader.maxFrameBytes = maxFrameBytes;
  }

  /** Ends the link when what was sent has left. */
  stop(): void {
    this.#flush();
    this.input({ type: 'stopped' });
  }

  #flush(): void {
    this.#flushing = false;
    if (this.#outgoing.length === 0) return;
    const texts = this.#outgoing;
    this.#outgoing = [];
    this.#socket?.write(encodeFrames(texts));
  }

  #perform(effect: LinkEffect): void {
    switch (effect.type) {
      case 'dial':
        this.#dial();
        return;
      case 'greet':
        this.#owner.greet();
        return;
      case 'prepare':
        this.#owner.prepare();
        return;
      case 'reportUp':
        this.#owner.up();
        return;
      case 'reportDown':
        this.#owner.down(effect.reason);
        return;
      case 'reportEnd':
        this.#owner.end(effect.reason);
        return;
      case 'hangUp':
        this.#hangUp();
        return;
      case 'wakeIn':
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => this.input({ type: 'rang' }), effect.ms);
        return;
      case 'wakeOff':
        clearTimeout(this.#timer);
        this.#timer = undefined;
        return;
    }
  }

  #dial(): void {
    const socket = connect({ path: this.#path });
    this.#socket = socket;
    this.#reader = new FrameReader(MAX_FRAME_BYTES);
    let failure: unknown;
    socket.on('connect', () => this.#socket === socket && this.input({ type: 'opened' }));
    socket.on('data', (chunk) => this.#socket === socket && this.#received(chunk));
    socket.on('error', (error) => {
      failure = error;
    });
    socket.on('close', () => {
      if (this.#socket !== socket) return;
      this.input({
        type: 'lost',
        reason: failure ?? new BrokerError('unavailable', 'the broker closed the connection'),
      });
    });
  }

  #hangUp(): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#outgoing = [];
    if (socket === undefined) return;
    // What was written still leaves; a peer that does not read it cannot hold us.
    socket.end();
    socket.destroySoon();
    socket.unref();
  }

  #received(chunk: Buffer): void {
    const reader = this.#reader;
    reader.push(chunk);
    for (let payload = reader.next(); payload !== undefined; payload = reader.next()) {
      const read = readEnvelope(payload, JSON_LIMITS_EXTENSION);
      if (!read.ok) {
        const farewell = farewellOf(payload);
        if (farewell !== undefined) return this.input({ type: 'lost', reason: farewell });
        this.#violated(`a frame of the broker is not readable: ${read.fault.reason}`);
        return;
      }
      try {
        this.#owner.message(read.envelope);
      } catch (error) {
        this.#violated('a message of the broker is not understood', error);
        return;
      }
      if (this.#reader !== reader || this.#socket === undefined) return;
    }
    if (reader.fault !== undefined) this.#violated(`the broker's stream is not readable: ${reader.fault.reason}`);
  }

  #violated(message: string, cause?: unknown): void {
    this.input({ type: 'lost', reason: new BrokerError('protocol_violation', message, { cause }) });
  }
}

/** The one error without a request id that a broker sends before it closes a connection, or undefined. */
function farewellOf(payload: Uint8Array): BrokerError | undefined {
  try {
    const { type, error } = JSON.parse(Buffer.from(payload).toString('utf8')) as { type?: unknown; error?: unknown };
    const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
    if (type !== 'error' || typeof code !== 'string') return undefined;
    return new BrokerError(code, `the broker ended the connection: ${typeof message === 'string' ? message : code}`);
  } catch {
    return undefined;
  }
}
