import { createHash } from 'node:crypto';
import { mkdtemp, open, readdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { download } from './download.js';
import type { TransferClock } from './exchange.js';
import { TransferError } from './transfer-error.js';
import { createTransport, parseObjectUrl, type Transport } from './transport.js';
import { upload } from './upload.js';

const SECRET = 'X-Amz-Signature=5ec2e7canary';
const sha256 = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');

interface Seen {
  method: string;
  headers: http.IncomingHttpHeaders;
  bytes: number;
  sha256: string;
  complete: boolean;
  port: number;
}
type Answer = (request: http.IncomingMessage, response: http.ServerResponse, seen: Seen, number: number) => void;

let folder: string;
let store: http.Server;
let seen: Seen[];
let transport: Transport;
let waits: number[];
let answer: Answer;
let beforeBody: ((request: http.IncomingMessage, response: http.ServerResponse, number: number) => boolean) | undefined;
const clock: TransferClock = {
  now: () => Date.parse('2026-01-01T00:00:00Z'),
  random: () => 0.5,
  sleep: async (ms) => {
    waits.push(ms);
  },
};

beforeAll(async () => {
  store = http.createServer((request, response) => {
    const number = seen.length + 1;
    const hash = createHash('sha256');
    const entry: Seen = {
      method: request.method ?? '',
      headers: request.headers,
      bytes: 0,
      sha256: '',
      complete: false,
      port: request.socket.remotePort ?? 0,
    };
    seen.push(entry);
    if (beforeBody?.(request, response, number)) return;
    request.on('data', (chunk: Buffer) => {
      hash.update(chunk);
      entry.bytes += chunk.length;
    });
    request.on('error', () => undefined);
    request.on('end', () => {
      entry.sha256 = hash.digest('hex');
      entry.complete = request.complete;
      const unsigned = Object.keys(request.headers).filter((name) => name.startsWith('x-amz-'));
      if (request.headers['transfer-encoding'] !== undefined) response.writeHead(501).end();
      else if (request.method === 'PUT' && request.headers['content-length'] === undefined)
        response.writeHead(411).end();
      else if (unsigned.length > 0 || request.headers['expect'] !== undefined) response.writeHead(403).end();
      else answer(request, response, entry, number);
    });
  });
  await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve));
});
afterAll(() => {
  store.closeAllConnections();
  return new Promise((resolve) => store.close(resolve));
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reelhost-transfer-'));
  seen = [];
  waits = [];
  beforeBody = undefined;
  answer = (_request, response) => response.writeHead(200).end();
  transport = createTransport({ variables: {} });
});
afterEach(async () => {
  transport.close();
  await rm(folder, { recursive: true, force: true });
});

const url = (path = '/bucket/object'): string =>
  `http://127.0.0.1:${(store.address() as AddressInfo).port}${path}?${SECRET}`;
const signal = (): AbortSignal => new AbortController().signal;
const file = (name: string): string => join(folder, name);

function get(more: Partial<Parameters<typeof download>[1]> = {}) {
  return download(transport, {
    url: url(),
    target: file('in.bin'),
    maxBytes: 1 << 30,
    signal: signal(),
    clock,
    ...more,
  });
}
function put(more: Partial<Parameters<typeof upload>[1]> = {}) {
  return upload(transport, {
    url: url(),
    source: file('out.bin'),
    maxBytes: 1 << 30,
    contentType: 'video/mp4',
    signal: signal(),
    clock,
    ...more,
  });
}
async function failure(work: Promise<unknown>): Promise<TransferError> {
  const error = await work.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  expect(error).toBeInstanceOf(TransferError);
  expect(String((error as Error).message)).not.toContain('canary');
  return error as TransferError;
}

describe('sending a file', () => {
  it.each([0, 1, 1 << 20, 5 * (1 << 20) + 17])(
    'is one plain PUT with exact length, type and digest (%i bytes) [RB-URL-03]',
    async (size) => {
      const content = Buffer.alloc(size, 'abcdefg');
      await writeFile(file('out.bin'), content);
      expect(await put()).toEqual({ bytes: size, sha256: sha256(content) });
      expect(seen).toHaveLength(1);
      expect(seen[0]).toMatchObject({ method: 'PUT', bytes: size, sha256: sha256(content), complete: true });
      expect(Object.keys(seen[0]?.headers ?? {}).sort()).toEqual([
        'connection',
        'content-length',
        'content-type',
        'host',
      ]);
      expect(seen[0]?.headers).toMatchObject({ 'content-length': String(size), 'content-type': 'video/mp4' });
    },
  );

  it('opens the file anew for each try: reset at 40 %, 503 with Retry-After, then success', async () => {
    const content = Buffer.alloc(3 << 20, 'retry');
    await writeFile(file('out.bin'), content);
    beforeBody = (request, _response, number) => {
      if (number !== 1) return false;
      let got = 0;
      request.on('data', (chunk: Buffer) => {
        got += chunk.length;
        if (got > content.length * 0.4) request.socket.destroy();
      });
      request.on('error', () => undefined);
      return true;
    };
    answer = (_request, response, _seen, number) => {
      if (number === 2) response.writeHead(503, { 'retry-after': '7' }).end();
      else response.writeHead(200).end();
    };
    expect(await put()).toEqual({ bytes: content.length, sha256: sha256(content) });
    expect(seen).toHaveLength(3);
    expect(seen[2]).toMatchObject({ bytes: content.length, sha256: sha256(content) });
    expect(waits).toEqual([188, 7000]);
  });

  it('reads the answer of a store that refuses before it has read everything', async () => {
    await writeFile(file('out.bin'), Buffer.alloc(24 << 20));
    beforeBody = (_request, response) => {
      response.writeHead(403).end('<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>');
      return true;
    };
    const error = await failure(put());
    expect(error).toMatchObject({ code: 'failed', retryable: true, detail: 'url_expired' });
    expect(seen).toHaveLength(1);
  });

  it('asks a dead URL once, a missing bucket once, and follows no redirect [RB-URL-05]', async () => {
    await writeFile(file('out.bin'), 'x');
    answer = (_request, response) => response.writeHead(400).end('<Code>ExpiredRequest</Code>');
    expect(await failure(put())).toMatchObject({ retryable: true, detail: 'url_expired' });
    answer = (_request, response) => response.writeHead(403).end('<Code>SignatureDoesNotMatch</Code>');
    expect(await failure(put())).toMatchObject({ retryable: true, detail: undefined });
    answer = (_request, response) => response.writeHead(404).end();
    expect(await failure(put())).toMatchObject({ retryable: false });
    answer = (_request, response) => response.writeHead(307, { location: 'http://127.0.0.1:9/elsewhere' }).end();
    expect(await failure(put())).toMatchObject({ retryable: false, detail: 'redirect' });
    expect(seen).toHaveLength(4);
    expect(waits).toEqual([]);
  });

  it('refuses a file that is too large before the first byte', async () => {
    await writeFile(file('out.bin'), Buffer.alloc(101));
    expect(await failure(put({ maxBytes: 100 }))).toMatchObject({ code: 'too_large' });
    expect(seen).toHaveLength(0);
  });

  it('never lets a file that changes while it is sent become an object', async () => {
    await writeFile(file('out.bin'), Buffer.alloc(6 << 20, 'a'));
    const grow = (): Promise<void> => writeFile(file('out.bin'), Buffer.alloc(6 << 20, 'b'));
    let touched: Promise<void> | undefined;
    const error = await failure(
      put({
        onBytes: () => {
          touched ??= grow();
        },
      }),
    );
    await touched;
    expect(error).toMatchObject({ code: 'failed', detail: 'changed', retryable: true });
    expect(seen.some((each) => each.complete)).toBe(false);
  });

  it('notices a file that becomes shorter, and refuses a symlink', async () => {
    await writeFile(file('out.bin'), Buffer.alloc(6 << 20, 'a'));
    let cut: Promise<void> | undefined;
    const error = await failure(
      put({
        onBytes: () => {
          cut ??= truncate(file('out.bin'), 1000);
        },
      }),
    );
    await cut;
    expect(error.detail).toBe('changed');
    await symlink('/etc/hostname', file('link'));
    await failure(put({ source: file('link') }));
  });

  it('gives up after five tries and says so', async () => {
    await writeFile(file('out.bin'), 'x');
    answer = (_request, response) => response.writeHead(500).end();
    const error = await failure(put());
    expect(error).toMatchObject({ code: 'failed', retryable: true });
    expect(error.message).toContain('5 tries');
    expect(seen).toHaveLength(5);
  });

  it('keeps the connection for the next transfer', async () => {
    await writeFile(file('out.bin'), 'x');
    await put();
    await put();
    expect(new Set(seen.map((each) => each.port)).size).toBe(1);
  });

  it('stops at once when it is cancelled', async () => {
    await writeFile(file('out.bin'), Buffer.alloc(8 << 20));
    const abort = new AbortController();
    beforeBody = () => {
      abort.abort();
      return true;
    };
    expect(await failure(put({ signal: abort.signal }))).toMatchObject({ code: 'aborted' });
  });

  it('sends a large sparse file in constant memory', async () => {
    const sparse = await open(file('out.bin'), 'w');
    await sparse.truncate(300 << 20);
    await sparse.close();
    const before = process.memoryUsage().rss;
    let peak = 0;
    const result = await put({
      onBytes: () => {
        peak = Math.max(peak, process.memoryUsage().rss);
      },
    });
    expect(result.bytes).toBe(300 << 20);
    expect(seen[0]?.sha256).toBe(result.sha256);
    expect(peak - before).toBeLessThan(100 << 20);
  });
});

describe('fetching an object', () => {
  const serve = (content: Buffer, headers: Record<string, string> = {}): void => {
    answer = (_request, response) =>
      response.writeHead(200, { 'content-length': String(content.length), ...headers }).end(content);
  };

  it('writes the whole object, hashed in the same pass, and nothing else', async () => {
    const content = Buffer.alloc(9 << 20, 'media');
    serve(content);
    expect(await get({ sha256: sha256(content).toUpperCase() })).toEqual({
      bytes: content.length,
      sha256: sha256(content),
    });
    expect(content.equals(await readFile(file('in.bin')))).toBe(true);
    expect(await readdir(folder)).toEqual(['in.bin']);
    expect(Object.keys(seen[0]?.headers ?? {}).sort()).toEqual(['connection', 'host']);
  });

  it('refuses a declared length over the limit before the body, and a lying or missing one while it streams [RB-URL-02]', async () => {
    serve(Buffer.alloc(2000));
    expect(await failure(get({ maxBytes: 1999 }))).toMatchObject({ code: 'too_large' });
    answer = (_request, response) => {
      response.writeHead(200);
      response.write(Buffer.alloc(1500));
      response.end(Buffer.alloc(501));
    };
    expect(await failure(get({ maxBytes: 2000 }))).toMatchObject({ code: 'too_large' });
    expect(await get({ maxBytes: 2001 })).toMatchObject({ bytes: 2001 });
    expect(await failure(get({ maxBytes: 1 << 20, roomBytes: 100 }))).toMatchObject({ code: 'disk_full' });
    expect(await readdir(folder)).toEqual(['in.bin']);
  });

  it('keeps transfers apart that run at once, hashed in the thread, in pieces of any size', async () => {
    const contents = [1, 2, 3].map((seed) => Buffer.alloc((17 << 20) + seed, `content ${seed} `));
    answer = (request, response) => {
      const content = contents[Number(request.url?.[1])] as Buffer;
      response.writeHead(200);
      // Without a length: chunks of the coding, a thousand tiny ones among them.
      for (let at = 0; at < 1000; at += 1) response.write(content.subarray(at, at + 1));
      response.end(content.subarray(1000));
    };
    const fetched = contents.map((content, index) =>
      get({ url: url(`/${index}`), target: file(`in-${index}`) }).then((result) => [result, content] as const),
    );
    for (const [result, content] of await Promise.all(fetched))
      expect(result).toEqual({ bytes: content.length, sha256: sha256(content) });
    for (const [index, content] of contents.entries())
      expect(sha256(await readFile(file(`in-${index}`)))).toBe(sha256(content));
    answer = (_request, response) => response.writeHead(200).end();
    const sent = contents.map((_content, index) => put({ source: file(`in-${index}`) }));
    expect(await Promise.all(sent)).toEqual(
      contents.map((content) => ({ bytes: content.length, sha256: sha256(content) })),
    );
    expect(seen.slice(3).map((entry) => entry.sha256)).toEqual(
      expect.arrayContaining(contents.map((content) => sha256(content))),
    );
  });

  it('refuses another digest and leaves an existing file as it was', async () => {
    await writeFile(file('in.bin'), 'before');
    serve(Buffer.from('after'));
    expect(await failure(get({ sha256: sha256('other') }))).toMatchObject({
      code: 'failed',
      retryable: false,
      detail: 'digest',
    });
    expect(await readFile(file('in.bin'), 'utf8')).toBe('before');
    expect(await readdir(folder)).toEqual(['in.bin']);
  });

  it('tries again after a body that was cut off', async () => {
    const content = Buffer.alloc(1 << 20, 'z');
    answer = (_request, response, _seen, number) => {
      response.writeHead(200, { 'content-length': String(content.length) });
      if (number === 1) response.write(content.subarray(0, 1000), () => response.destroy());
      else response.end(content);
    };
    expect(await get()).toEqual({ bytes: content.length, sha256: sha256(content) });
    expect(seen).toHaveLength(2);
  });

  it('honours a Retry-After date, but not for ever', async () => {
    answer = (_request, response, _seen, number) => {
      if (number === 1) response.writeHead(429, { 'retry-after': 'Thu, 01 Jan 2026 00:00:03 GMT' }).end();
      else response.writeHead(503, { 'retry-after': '3600' }).end();
    };
    expect(await failure(get())).toMatchObject({ retryable: true });
    expect(waits).toEqual([3000]);
    expect(seen).toHaveLength(2);
  });

  it('takes https everywhere and plain http to loopback only, without credentials', () => {
    for (const good of [
      'https://store.example.invalid/o?x=1',
      'http://127.0.0.1:1/o',
      'http://[::1]:1/o',
      'http://localhost/o',
    ]) {
      expect(parseObjectUrl(good)).toBeInstanceOf(URL);
    }
    for (const bad of [
      'http://store.example.invalid/o',
      'ftp://127.0.0.1/o',
      'file:///etc/passwd',
      'nonsense',
      'https://u:p@h.invalid/',
      'http://127.0.0.1.example.invalid/',
    ]) {
      expect(() => parseObjectUrl(bad)).toThrow(TransferError);
    }
  });

  it('reports a host that cannot be reached without its query', async () => {
    const error = await failure(get({ url: `http://127.0.0.1:1/o?${SECRET}` }));
    expect(error).toMatchObject({ code: 'failed', retryable: true });
    expect(error.message).toContain('127.0.0.1:1');
  });
});
