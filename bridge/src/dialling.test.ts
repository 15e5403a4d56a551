/** How the gateway is reached: URLs, proxies, private authorities, and what the socket itself does. Real sockets, no processes. */
import { once } from 'node:events';
import { createServer as createHttpServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { MAX_MESSAGE_BYTES, SUBPROTOCOL } from '@reelhost/bridge-protocol';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Input } from './core/index.js';
import { GatewayLink } from './gateway-link.js';
import { gatewayUrl } from './gateway-url.js';
import { describeRoute, proxyFor } from './proxy-route.js';

describe('gateway URL [RB-NET-02]', () => {
  it.each([
    ['wss://runner.example', false, 'wss://runner.example/v1/connect'],
    ['wss://runner.example/', false, 'wss://runner.example/v1/connect'],
    ['runner.example', false, 'wss://runner.example/v1/connect'],
    ['wss://runner.example:8443/x/connect', false, 'wss://runner.example:8443/x/connect'],
    ['ws://127.0.0.1:8787', true, 'ws://127.0.0.1:8787/v1/connect'],
    ['ws://localhost:1', true, 'ws://localhost:1/v1/connect'],
    ['ws://[::1]:1', true, 'ws://[::1]:1/v1/connect'],
  ])('%s is dialled', (text, insecure, url) => {
    expect(gatewayUrl(text, insecure).href).toBe(url);
  });

  it.each([
    ['ws://127.0.0.1:8787', false, /--insecure-dev/],
    ['ws://runner.example', true, /this computer only/],
    ['ws://127.0.0.1.example', true, /this computer only/],
    ['https://runner.example', false, /use wss/],
    ['wss://user:secret@runner.example', false, /no user name/],
    ['wss://', false, /not a URL/],
  ])('%s is refused', (text, insecure, message) => {
    expect(() => gatewayUrl(text, insecure)).toThrow(message);
  });
});

describe('proxy', () => {
  const env = {
    HTTPS_PROXY: 'http://user:pw@proxy.example:3128',
    NO_PROXY: 'exact.example,.suffix.example, *.star.example ported.example:8443 10.0.0.1',
  };

  it.each([
    ['runner.example', 443, true],
    ['exact.example', 443, false],
    ['sub.exact.example', 443, false],
    ['notexact.example', 443, true],
    ['a.suffix.example', 443, false],
    ['suffix.example', 443, false],
    ['a.star.example', 443, false],
    ['ported.example', 8443, false],
    ['ported.example', 443, true],
    ['10.0.0.1', 443, false],
    ['EXACT.example', 443, false],
  ])('%s:%i goes through it: %s', (host, port, isProxied) => {
    expect(proxyFor(host, port, env) !== null).toBe(isProxied);
  });

  it('lower case counts too, `*` excludes all, and nobody sees the password', () => {
    expect(proxyFor('a.example', 443, { https_proxy: 'proxy.example:1' })?.host).toBe('proxy.example:1');
    expect(proxyFor('a.example', 443, { HTTPS_PROXY: 'http://p', no_proxy: '*' })).toBeNull();
    expect(proxyFor('a.example', 443, {})).toBeNull();
    expect(describeRoute(proxyFor('runner.example', 443, env))).toBe('proxy proxy.example:3128');
  });
});

describe('socket', () => {
  const cleanups: (() => void)[] = [];
  afterEach(() => {
    for (const cleanup of cleanups.splice(0).reverse()) cleanup();
  });

  async function server(): Promise<{ port: number; sockets: WebSocket[]; http: Server }> {
    const http = createHttpServer();
    const sockets: WebSocket[] = [];
    const wss = new WebSocketServer({
      server: http,
      handleProtocols: (offered) => (offered.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
    });
    wss.on('connection', (socket) => {
      socket.on('error', () => undefined);
      sockets.push(socket);
    });
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    cleanups.push(() => {
      for (const socket of sockets) socket.terminate();
      wss.close();
      http.close();
    });
    return { port: (http.address() as AddressInfo).port, sockets, http };
  }

  function link(
    url: string,
    environment: Record<string, string> = {},
  ): { link: GatewayLink; inputs: Input[]; got: (kind: Input['kind']) => Promise<Input> } {
    const inputs: Input[] = [];
    const made = new GatewayLink({ url: new URL(url), ca: undefined, environment }, (input) => inputs.push(input));
    cleanups.push(() => made.stop());
    const got = (kind: Input['kind']): Promise<Input> =>
      vi.waitFor(() => {
        const found = inputs.find((input) => input.kind === kind);
        if (found === undefined) throw new Error(`no ${kind} in ${JSON.stringify(inputs)}`);
        return found;
      }, 5_000);
    return { link: made, inputs, got };
  }

  it('offers the subprotocol, no compression, and measures the clock by the Date header [RB-NET-03]', async () => {
    const { port, sockets, http } = await server();
    let headers: NodeJS.Dict<string | string[]> = {};
    http.on('upgrade', (request) => {
      headers = request.headers;
    });
    const { link: made, got } = link(`ws://127.0.0.1:${port}/v1/connect`);
    made.dial(1);
    expect(await got('linkUpgraded')).toMatchObject({ generation: 1 });
    expect(headers['sec-websocket-protocol']).toBe(SUBPROTOCOL);
    expect(headers['sec-websocket-extensions']).toBeUndefined();
    expect(sockets).toHaveLength(1);
  });

  it('a server without the subprotocol is not a gateway', async () => {
    const http = createHttpServer();
    const wss = new WebSocketServer({ server: http, handleProtocols: () => false });
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    cleanups.push(() => {
      for (const client of wss.clients) client.terminate();
      wss.close();
      http.close();
    });
    const { link: made, got } = link(`ws://127.0.0.1:${(http.address() as AddressInfo).port}/`);
    made.dial(1);
    expect(await got('linkFailed')).toMatchObject({ message: expect.stringContaining(SUBPROTOCOL) });
  });

  it('HTTP refusals are told apart: 429 with Retry-After, others by number', async () => {
    const http = createHttpServer();
    let status = '429 Too Many Requests\r\nRetry-After: 77';
    http.on('upgrade', (_request, socket: Socket) => socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`));
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    cleanups.push(() => http.close());
    const { link: made, inputs, got } = link(`ws://127.0.0.1:${(http.address() as AddressInfo).port}/`);
    made.dial(1);
    expect(await got('linkFailed')).toMatchObject({ rateLimitedSec: 77 });
    inputs.length = 0;
    status = '503 Service Unavailable';
    made.dial(2);
    expect(await got('linkFailed')).toMatchObject({
      generation: 2,
      rateLimitedSec: null,
      message: expect.stringContaining('503'),
    });
  });

  it('a message over 4 MiB + 64 KiB is never buffered, and the close is not taken for a complaint about us [RB-ENV-03]', async () => {
    const { port, sockets } = await server();
    const { link: made, got, inputs } = link(`ws://127.0.0.1:${port}/`);
    made.dial(1);
    await got('linkUpgraded');
    sockets[0]?.send('x'.repeat(MAX_MESSAGE_BYTES + 1));
    expect(await got('linkClosed')).toMatchObject({ code: 1006 });
    expect(inputs.some((input) => input.kind === 'messageReceived' || input.kind === 'malformedReceived')).toBe(false);
  });

  it('binary frames and nonsense do not end the connection', async () => {
    const { port, sockets } = await server();
    const { link: made, got, inputs } = link(`ws://127.0.0.1:${port}/`);
    made.dial(1);
    await got('linkUpgraded');
    sockets[0]?.send(Buffer.from([1, 2, 3]));
    sockets[0]?.send('not json');
    sockets[0]?.send('{"v":1,"type":"hint","id":"1","payload":{}}');
    await vi.waitFor(() =>
      expect(inputs.map((input) => input.kind)).toEqual([
        'linkUpgraded',
        'unknownReceived',
        'malformedReceived',
        'unknownReceived',
      ]),
    );
  });

  it('a destroyed connection tells nothing more, and a frozen peer does not hold it', async () => {
    const { port, sockets } = await server();
    const { link: made, got, inputs } = link(`ws://127.0.0.1:${port}/`);
    made.dial(1);
    await got('linkUpgraded');
    sockets[0]?.pause();
    made.destroy(1);
    made.dial(2);
    await vi.waitFor(() => expect(inputs.filter((input) => input.kind === 'linkUpgraded')).toHaveLength(2));
    expect(inputs.every((input) => input.kind === 'linkUpgraded')).toBe(true);
  });

  it('a gateway that does not read presses, stops our reading, and in the end loses the connection', async () => {
    const { port, sockets } = await server();
    const { link: made, got, inputs } = link(`ws://127.0.0.1:${port}/`);
    made.dial(1);
    await got('linkUpgraded');
    sockets[0]?.pause();
    const text = 'x'.repeat(4 * 1024 * 1024);
    made.send(1, text);
    made.send(1, text);
    expect(await got('linkPressed')).toMatchObject({ pressed: true });
    sockets[0]?.send('{"v":1,"type":"hint","id":"1","payload":{}}', () => sockets[0]?.resume());
    await vi.waitFor(() => {
      const pressed = inputs.filter((input) => input.kind === 'linkPressed').map((input) => input.pressed);
      expect(pressed).toEqual([true, false]);
      expect(inputs.some((input) => input.kind === 'unknownReceived')).toBe(true);
    }, 5_000);
    sockets[0]?.pause();
    for (let count = 0; count < 14; count += 1) made.send(1, text);
    expect(await got('linkClosed')).toMatchObject({ generation: 1 });
  });

  it('goes through CONNECT, with the credentials of the proxy URL; 407 names the proxy', async () => {
    const { port } = await server();
    const requests: { target: string; authorization: string | undefined }[] = [];
    const proxy = createHttpServer();
    let answer = 407;
    proxy.on('connect', (request, client: Socket) => {
      requests.push({ target: request.url ?? '', authorization: request.headers['proxy-authorization'] });
      if (answer === 407) {
        client.end('HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n');
        return;
      }
      const upstream = connect(port, '127.0.0.1', () => client.write('HTTP/1.1 200 OK\r\n\r\n'));
      upstream.pipe(client).pipe(upstream);
      upstream.on('error', () => client.destroy());
      client.on('error', () => upstream.destroy());
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    cleanups.push(() => {
      proxy.closeAllConnections();
      proxy.close();
    });
    const proxyUrl = `http://user:s3cret@127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const { link: made, inputs, got } = link('wss://gateway.invalid/', { HTTPS_PROXY: proxyUrl });
    made.dial(1);
    const refused = await got('linkFailed');
    expect(refused).toMatchObject({ message: expect.stringContaining('407') });
    expect(JSON.stringify(refused)).toContain('proxy 127.0.0.1');
    expect(requests).toEqual([
      { target: 'gateway.invalid:443', authorization: `Basic ${Buffer.from('user:s3cret').toString('base64')}` },
    ]);
    // Behind the proxy there is no TLS here, which is told as what it is.
    answer = 200;
    inputs.length = 0;
    made.dial(2);
    const broken = await got('linkFailed');
    expect(JSON.stringify(broken)).not.toContain('s3cret');
  });
});
