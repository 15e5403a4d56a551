/**
 * The connection under a client: hello, requests and their replies, across cuts. What may be said twice is said again after a cut; what may
 * not ends as `unknown_outcome`. Which messages mean what to the client is decided by its owner.
 */
import {
  type Envelope,
  EXTENSION,
  encode,
  type MessageFields,
  type Push,
  readPush,
  readWireError,
} from '@reelhost/protocol';
import { type RequestEffect, type RequestKind, RequestTable } from './core/request-table.js';
import { Deferred } from './deferred.js';
import { BrokerError, PASSING_REFUSALS } from './errors.js';
import { type ConnectionTerms, IDLE_TERMS, readHelloOk } from './hello-reply.js';
import { Link, type LinkOwner } from './link.js';

/** How a connection introduces itself, and how patient it is. */
export interface ConnectionOptions {
  readonly socketPath: string;
  readonly runtimeId: string;
  readonly software: string | undefined;
  readonly requestTimeoutMs: number;
}

/** Who is told what happens. */
export interface ConnectionOwner {
  /** The connection serves, for the first time or again. Requests that waited have been sent. */
  connected(): void;
  disconnected(reason: unknown): void;
  pushed(push: Push, envelope: Envelope): void;
  /** Over for good; all waiting requests are rejected after this with the same error. */
  ended(error: unknown): void;
}

/** How a request is to be treated. */
export interface RequestManner extends RequestKind {
  /** How much longer than usual the reply may take, in milliseconds. */
  readonly extraMs?: number | undefined;
}

/** A request that has no reply yet. Its time runs while it waits for the broker or for a connection, not while it waits for other requests. */
interface Waiting {
  readonly reply: Deferred<Envelope>;
  readonly limitMs: number;
  readonly late: () => void;
  timer: NodeJS.Timeout | undefined;
}

/** A client's connection. */
export class ClientConnection implements LinkOwner {
  /** What the present or last connection agreed on. */
  terms: ConnectionTerms = IDLE_TERMS;
  readonly #options: ConnectionOptions;
  readonly #owner: ConnectionOwner;
  readonly #link: Link;
  readonly #requests = new RequestTable();
  readonly #waiting = new Map<string, Waiting>();
  readonly #first = new Deferred<void>();
  #helloId = '';
  #lastRequest = 0;
  #lastFailure: unknown;
  #closed = false;

  constructor(options: ConnectionOptions, owner: ConnectionOwner) {
    this.#options = options;
    this.#owner = owner;
    this.#link = new Link(options.socketPath, this);
  }

  /** Whether there is a connection at this moment. */
  get isUp(): boolean {
    return this.#link.phase === 'up';
  }

  /** Whether it was closed or has ended. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Dials, and waits for the first handshake. @throws BrokerError `not_running`, `connect_timeout`, or a refusal of hello */
  async open(limitMs: number): Promise<void> {
    const timer = Number.isFinite(limitMs) ? setTimeout(() => this.#giveUp(limitMs), limitMs) : undefined;
    this.#link.input({ type: 'started' });
    try {
      await this.#first.promise;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Sends a request when there is a connection; resolves with the reply. @throws BrokerError */
  request(type: string, fields: MessageFields, manner: RequestManner): Promise<Envelope> {
    if (this.#closed) return Promise.reject(new BrokerError('client_closed', 'the client was closed'));
    const id = this.#requestId();
    const reply = new Deferred<Envelope>();
    const limitMs = this.#options.requestTimeoutMs + (manner.extraMs ?? 0);
    const late = (): void =>
      this.#fail(id, new BrokerError('request_timeout', `no reply to ${type} within ${limitMs} ms`));
    const waiting: Waiting = { reply, limitMs, late, timer: undefined };
    this.#waiting.set(id, waiting);
    startTimer(waiting);
    this.#perform(this.#requests.add(id, encode(type, id, fields), manner));
    return reply.promise;
  }

  /** Whether a request whose reply is held back could be sent at once; else it waits until another one is answered. */
  get hasPatientPlace(): boolean {
    return this.#requests.hasPatientPlace;
  }

  /** @throws BrokerError `not_supported` when the present broker does not speak the extension */
  requireExtension(what: string): void {
    if (!this.isUp || this.terms.extension) return;
    throw new BrokerError('not_supported', `the broker does not speak ${EXTENSION}, which is needed for ${what}`);
  }

  /** Disconnects for good. */
  close(): void {
    this.#closed = true;
    this.#link.stop();
  }

  // The link's owner.

  greet(): void {
    this.#helloId = this.#requestId();
    const { runtimeId, software } = this.#options;
    const extended = { extensions: [EXTENSION], pid: process.pid, software };
    const hello = { mode: 'client', runtime_id: runtimeId, max_concurrency: 0, ...extended };
    this.#link.send(encode('hello', this.#helloId, hello));
  }

  prepare(): void {
    this.#link.input({ type: 'prepared' });
  }

  up(): void {
    const { extension, maxOutstandingRequests: most } = this.terms;
    // A broker of the extension answers everything at once but what is patient; one place is left for all else.
    const window =
      extension && most > 1 ? { all: Number.POSITIVE_INFINITY, patient: most - 1 } : { all: most, patient: most };
    this.#perform(this.#requests.linkUp(window));
    this.#owner.connected();
    this.#first.resolve();
  }

  down(reason: unknown): void {
    this.#lastFailure = reason;
    this.#owner.disconnected(reason);
    this.#perform(this.#requests.linkDown());
    for (const waiting of this.#waiting.values()) if (waiting.timer === undefined) startTimer(waiting);
  }

  end(reason: unknown): void {
    this.#closed = true;
    const error = reason ?? new BrokerError('client_closed', 'the client was closed');
    this.#first.reject(error);
    this.#owner.ended(error);
    for (const requestId of [...this.#waiting.keys()]) this.#fail(requestId, error);
  }

  message(envelope: Envelope): void {
    const push = readPush(envelope);
    if (push === undefined) this.#replied(envelope);
    else if (push.type === 'ping') this.#link.send(encode('pong', this.#requestId(), { ping_id: push.ping_id }));
    else this.#owner.pushed(push, envelope);
  }

  #replied(envelope: Envelope): void {
    const id = envelope.requestId;
    if (id === this.#helloId) {
      this.#helloId = '';
      this.#greeted(envelope);
      return;
    }
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    clearTimeout(waiting?.timer);
    if (envelope.type === 'error') waiting?.reply.reject(refusal(envelope));
    else waiting?.reply.resolve(envelope);
    this.#perform(this.#requests.close(id));
  }

  #greeted(envelope: Envelope): void {
    if (envelope.type === 'error') {
      const error = refusal(envelope);
      this.#link.input({ type: 'refused', retryable: PASSING_REFUSALS.has(error.code), reason: error });
      return;
    }
    this.terms = readHelloOk(envelope);
    if (this.terms.extension) this.#link.allowLargeFrames(this.terms.maxFrameBytes);
    this.#link.input({ type: 'greeted' });
  }

  #giveUp(limitMs: number): void {
    const cause = this.#lastFailure;
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    const error =
      code === 'ENOENT' || code === 'ECONNREFUSED'
        ? new BrokerError('not_running', 'no broker listens at the socket', { cause })
        : new BrokerError('connect_timeout', `no handshake with the broker within ${limitMs} ms`, { cause });
    this.#first.reject(error);
    this.close();
  }

  #fail(requestId: string, error: unknown): void {
    const waiting = this.#waiting.get(requestId);
    this.#waiting.delete(requestId);
    clearTimeout(waiting?.timer);
    waiting?.reply.reject(error);
    this.#perform(this.#requests.close(requestId));
  }

  #perform(effects: readonly RequestEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case 'send': {
          this.#link.send(effect.text);
          const waiting = this.#waiting.get(effect.requestId);
          if (waiting !== undefined && waiting.timer === undefined) startTimer(waiting);
          break;
        }
        case 'hold': {
          const waiting = this.#waiting.get(effect.requestId);
          clearTimeout(waiting?.timer);
          if (waiting !== undefined) waiting.timer = undefined;
          break;
        }
        case 'unknownOutcome':
          this.#fail(
            effect.requestId,
            new BrokerError('unknown_outcome', 'the connection was cut before the reply; the broker may have acted'),
          );
          break;
      }
    }
  }

  #requestId(): string {
    this.#lastRequest += 1;
    return `c${this.#lastRequest}`;
  }
}

function startTimer(waiting: Waiting): void {
  // A limit beyond what a timer can count means no limit.
  waiting.timer = setTimeout(waiting.late, Math.min(waiting.limitMs, 2 ** 31 - 1));
}

function refusal(envelope: Envelope): BrokerError {
  const { code, message, reason, error } = readWireError(envelope);
  return new BrokerError(code, message ?? reason ?? error?.message ?? code, {
    ...(reason === undefined ? {} : { reason }),
    ...(error === undefined ? {} : { jobError: error }),
  });
}
