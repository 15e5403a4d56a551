/**
 * The WebSocket to the gateway. It only moves text: what is sent and what an event means is decided by the core. Every event carries the generation of its socket,
 * and a socket that was given up is destroyed, never waited for.
 *
 * Limits: inbound messages of 4 MiB + 64 KiB (1009 beyond), no compression, no redirects. When the gateway does not read, reading stops first, and a buffer that
 * still grows ends the connection: answers are asked for again after the resume.
 */
import type { IncomingMessage } from 'node:http';
import { MAX_MESSAGE_BYTES, readInbound, SUBPROTOCOL } from '@reelhost/bridge-protocol';
import { HttpsProxyAgent } from 'https-proxy-agent';
import WebSocket from 'ws';
import type { Input } from './core/index.js';
import { describeRoute, type Environment, proxyFor } from './proxy-route.js';

/** Above this much unsent data no progress is sent any more. */
const PRESSED_BYTES = 1024 * 1024;
/** Above this much, nothing more is read from the gateway. */
const PAUSE_BYTES = 4 * 1024 * 1024;
/** Above this much the connection is given up. */
const MAX_BUFFERED_BYTES = 40 * 1024 * 1024;

/** How to dial. */
export type DialOptions = {
  readonly url: URL;
  /** Trusted roots, PEM; undefined: the default ones. */
  readonly ca: readonly string[] | undefined;
  readonly environment: Environment;
};

type Current = { readonly generation: number; readonly socket: WebSocket; pressed: boolean; opened: boolean };

/** See the head of the file. */
export class GatewayLink {
  #current: Current | null = null;
  readonly #options: DialOptions;
  readonly #emit: (input: Input) => void;

  constructor(options: DialOptions, emit: (input: Input) => void) {
    this.#options = options;
    this.#emit = emit;
  }

  /** Opens connection number `generation`; any older one is destroyed. */
  dial(generation: number): void {
    this.#destroyCurrent();
    const { url, ca, environment } = this.#options;
    const isSecure = url.protocol === 'wss:';
    const port = url.port === '' ? 443 : Number(url.port);
    let socket: WebSocket;
    let route = 'direct';
    try {
      const proxy = isSecure ? proxyFor(url.hostname, port, environment) : null;
      route = describeRoute(proxy);
      socket = new WebSocket(url, [SUBPROTOCOL], {
        perMessageDeflate: false,
        maxPayload: MAX_MESSAGE_BYTES,
        followRedirects: false,
        ...(ca === undefined ? {} : { ca: [...ca] }),
        ...(proxy === null ? {} : { agent: new HttpsProxyAgent(proxy) }),
      });
    } catch (error) {
      queueMicrotask(() =>
        this.#emit({ kind: 'linkFailed', generation, message: causeOf(error, url, route), rateLimitedSec: null }),
      );
      return;
    }
    const current: Current = { generation, socket, pressed: false, opened: false };
    this.#current = current;
    let skewMs: number | null = null;
    let failure: Input | null = null;
    let tooLarge = false;
    const fail = (message: string, rateLimitedSec: number | null = null): void => {
      failure ??= { kind: 'linkFailed', generation, message, rateLimitedSec };
    };
    socket.on('upgrade', (response: IncomingMessage) => {
      const serverMs = Date.parse(response.headers.date ?? '');
      if (!Number.isNaN(serverMs)) skewMs = Date.now() - serverMs;
    });
    socket.on('open', () => {
      current.opened = true;
      this.#emit({ kind: 'linkUpgraded', generation, skewMs });
    });
    socket.on('unexpected-response', (request, response) => {
      fail(refusalOf(response.statusCode ?? 0, route), response.statusCode === 429 ? retryAfterOf(response) : null);
      request.destroy();
      socket.terminate();
    });
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      if (isBinary) {
        this.#emit({ kind: 'unknownReceived', generation, type: '[binary]' });
        return;
      }
      this.#received(generation, data);
    });
    socket.on('error', (error) => {
      if ('code' in error && error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') tooLarge = true;
      fail(causeOf(error, url, route));
    });
    socket.on('close', (code, reason) => {
      if (this.#current === current) this.#current = null;
      if (!current.opened)
        this.#emit(
          failure ?? { kind: 'linkFailed', generation, message: `no connection (${code})`, rateLimitedSec: null },
        );
      // A message of the gateway's that was too large is its fault, not an answer of ours: 1009 would be read as that.
      else
        this.#emit({ kind: 'linkClosed', generation, code: tooLarge ? 1006 : code, reason: reason.toString('utf8') });
    });
  }

  /** Sends one message; dropped when that connection is gone. */
  send(generation: number, text: string): void {
    const current = this.#current;
    if (current === null || current.generation !== generation || current.socket.readyState !== WebSocket.OPEN) return;
    const { socket } = current;
    socket.send(text, () => this.#measure(current));
    if (socket.bufferedAmount > MAX_BUFFERED_BYTES) {
      socket.terminate();
      return;
    }
    this.#measure(current);
  }

  /** Begins the close handshake; the core destroys the socket when it takes too long. */
  close(generation: number, code: number, reason: string): void {
    if (this.#current?.generation === generation) this.#current.socket.close(code, reason.slice(0, 120));
  }

  /** Ends the connection at once, whatever the peer does. */
  destroy(generation: number): void {
    if (this.#current?.generation === generation) this.#destroyCurrent();
  }

  /** Ends whatever there is. */
  stop(): void {
    this.#destroyCurrent();
  }

  #destroyCurrent(): void {
    const current = this.#current;
    this.#current = null;
    if (current === null) return;
    current.socket.removeAllListeners();
    current.socket.on('error', () => undefined);
    current.socket.terminate();
  }

  #measure(current: Current): void {
    if (this.#current !== current) return;
    const { socket } = current;
    if (socket.bufferedAmount > PAUSE_BYTES && !socket.isPaused) socket.pause();
    else if (socket.bufferedAmount <= PRESSED_BYTES && socket.isPaused) socket.resume();
    const pressed = socket.bufferedAmount > PRESSED_BYTES;
    if (pressed === current.pressed) return;
    current.pressed = pressed;
    queueMicrotask(() => this.#emit({ kind: 'linkPressed', generation: current.generation, pressed }));
  }

  #received(generation: number, data: Buffer): void {
    const inbound = readInbound(data, 'gatewayToRunner');
    switch (inbound.kind) {
      case 'message':
        this.#emit({ kind: 'messageReceived', generation, message: inbound.message });
        return;
      case 'ignored':
        this.#emit({ kind: 'unknownReceived', generation, type: inbound.type ?? '' });
        return;
      case 'malformed':
        this.#emit({ kind: 'malformedReceived', generation, malformed: inbound });
        return;
    }
  }
}

const UNKNOWN_CHAIN: ReadonlySet<string> = new Set([
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
]);

/** What went wrong, in words for a person; never the text of a foreign error, which may hold a proxy password. */
function causeOf(error: unknown, url: URL, route: string): string {
  const code =
    error instanceof Error && 'code' in error ? String(error.code) : error instanceof Error ? error.name : 'error';
  const where = route === 'direct' ? url.host : `${url.host} through ${route}`;
  if (UNKNOWN_CHAIN.has(code)) {
    return `the certificate of ${url.host} is not signed by a known authority (${code}): TLS interception is likely; give its root with --ca-file`;
  }
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID')
    return `the certificate of ${url.host} is not valid now (${code}): check the clock`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `the certificate of ${url.host} is for another name`;
  if (error instanceof Error && /subprotocol/i.test(error.message)) return `${url.host} does not speak ${SUBPROTOCOL}`;
  return `cannot reach ${where} (${code})`;
}

function refusalOf(status: number, route: string): string {
  if (status === 407) return `the ${route} wants other credentials (407): check HTTPS_PROXY`;
  return `the upgrade was refused with HTTP ${status}${route === 'direct' ? '' : ` through ${route}`}`;
}

function retryAfterOf(response: IncomingMessage): number {
  const seconds = Number(response.headers['retry-after']);
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 3_600) : 0;
}
