/**
 * Opens connections to object stores: keep-alive, through the proxy the environment names, with an extra certificate authority where one is configured.
 * https everywhere; plain http to loopback only, and never through a proxy. A URL with a user name is refused.
 */
import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import type { OnReadOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import { checkServerIdentity, type PeerCertificate, rootCertificates } from 'node:tls';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { isLoopback, type ProxyVariables, proxyFor } from '../core/proxy-choice.js';
import { TransferError } from './transfer-error.js';

/** Where transfers get their sockets. One per executor; `close()` drops the idle ones. */
export interface Transport {
  /** Starts a request; the body and the answer are the caller's. Redirects are never followed. */
  request(url: URL, options: http.RequestOptions): http.ClientRequest;
  close(): void;
}

/** A connection attempt or a silent connection longer than this is broken off. */
export const IDLE_TIMEOUT_MS = 120_000;
const MAX_IDLE_SOCKETS = 8;
/**
 * Where connections read to, all the same one: the parser of HTTP copies what it keeps before the next read. The engine's own way is a new buffer of
 * 64 KiB for each read, which costs more processor time, most of it in the collector.
 */
const received = Buffer.allocUnsafeSlow(2 << 20);

/** `caFile`: a PEM file added to the built-in authorities. */
export function createTransport(options: { variables?: ProxyVariables; caFile?: string } = {}): Transport {
  const variables = options.variables ?? process.env;
  const trust = options.caFile === undefined ? {} : { ca: [...rootCertificates, readFileSync(options.caFile, 'utf8')] };
  const keep = {
    keepAlive: true,
    keepAliveMsecs: 10_000,
    maxFreeSockets: MAX_IDLE_SOCKETS,
    scheduling: 'lifo' as const,
  };
  const plain = new PlainAgent(keep);
  const direct = new TlsAgent({ ...keep, ...trust });
  const proxied = new Map<string, HttpsProxyAgent<string>>();

  function agentFor(url: URL): http.Agent {
    if (url.protocol === 'http:') return plain;
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const proxy = proxyFor(host, url.port === '' ? 443 : Number(url.port), variables);
    if (proxy === undefined) return direct;
    let agent = proxied.get(proxy);
    if (!agent) {
      agent = new HttpsProxyAgent(proxy, { ...keep, ...trust });
      proxied.set(proxy, agent);
    }
    return agent;
  }

  return {
    request(url, more) {
      const agent = agentFor(url);
      const start = url.protocol === 'http:' ? http.request : https.request;
      // The agent of a proxy takes the options of the TLS handshake from the request, and forgets the host when it is an address.
      const host = url.hostname.replace(/^\[|\]$/g, '');
      const tls = {
        ...trust,
        checkServerIdentity: (_name: string, peer: PeerCertificate) => checkServerIdentity(host, peer),
      };
      const request = start(url, { ...more, agent, ...(url.protocol === 'https:' ? tls : {}) });
      request.on('proxyConnect', ({ statusCode }: { statusCode: number }) => {
        if (statusCode !== 200) request.destroy(proxyRefusal(statusCode));
      });
      request.setTimeout(IDLE_TIMEOUT_MS, () => {
        request.destroy(Object.assign(new Error('no byte moved for too long'), { code: 'ETIMEDOUT' }));
      });
      return request;
    },
    close() {
      plain.destroy();
      direct.destroy();
      for (const agent of proxied.values()) agent.destroy();
    },
  };
}

class PlainAgent extends http.Agent {
  override createConnection(
    options: http.ClientRequestArgs,
    created?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    return readInto(received, (onread) => super.createConnection({ ...options, ...onread }, created));
  }
}

class TlsAgent extends https.Agent {
  override createConnection(
    options: https.RequestOptions,
    created?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    return readInto(received, (onread) => super.createConnection({ ...options, ...onread }, created));
  }
}

/** Reads of the connection go into `buffer`, again and again, and on to its listeners, which must be through with them when they return. */
function readInto(
  buffer: Buffer,
  connect: (options: { onread: OnReadOpts }) => Duplex | null | undefined,
): Duplex | null | undefined {
  const callback = (length: number): boolean => {
    connection?.emit('data', buffer.subarray(0, length));
    return true;
  };
  const connection = connect({ onread: { buffer, callback } });
  return connection;
}

function proxyRefusal(status: number): TransferError {
  const why = status === 407 ? 'it wants a user name and password' : 'see its log';
  return new TransferError(
    'failed',
    `the proxy refused the connection (${status}): ${why}; check HTTPS_PROXY and NO_PROXY`,
    {
      again: status >= 500,
      retryable: true,
      detail: 'proxy',
    },
  );
}

/**
 * Checks a presigned URL before anything is sent.
 * @throws TransferError `failed` for another scheme, plain http to a host that is not loopback, or a URL with credentials.
 */
export function parseObjectUrl(text: string): URL {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new TransferError('failed', 'the object URL is not a valid URL');
  }
  const loopback = isLoopback(url.hostname);
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && loopback)) {
    throw new TransferError(
      'failed',
      `object URLs are https (plain http to loopback only): refused ${url.protocol}//${url.host}`,
    );
  }
  if (url.username !== '' || url.password !== '')
    throw new TransferError('failed', 'an object URL carries no user name');
  url.hash = '';
  return url;
}
