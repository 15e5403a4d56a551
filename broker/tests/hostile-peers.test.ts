/** Peers that mean harm or have gone mad: only they suffer. */
import { connect, type Socket } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BrokerHome, type BrokerProcess } from './broker-process.js';
import { frame, RawPeer } from './raw-peer.js';

const home = new BrokerHome();
let broker: BrokerProcess;
let good: RawPeer;

beforeAll(async () => {
  broker = await home.start([], { prefix: ['sh', '-c', 'ulimit -n 128; exec "$@"', 'sh'] });
  good = await RawPeer.client(home.socket);
});
afterAll(async () => {
  await good.close();
  await home.remove();
});

/** The longest of some round trips of the peer that behaves, in ms. */
async function worstRoundTrip(times = 20): Promise<number> {
  let worst = 0;
  for (let n = 0; n < times; n++) {
    const before = performance.now();
    await good.request('heartbeat');
    worst = Math.max(worst, performance.now() - before);
  }
  return worst;
}

async function gone(sockets: readonly Socket[]): Promise<void> {
  await Promise.all(
    sockets.map((socket) => (socket.destroyed ? undefined : new Promise((resolve) => socket.once('close', resolve)))),
  );
}

test('500 connections that say nothing, with 128 file descriptors: whoever is in stays served, the rest is turned away, silence is ended', async () => {
  const silent: Socket[] = [];
  for (let n = 0; n < 500; n++) {
    const socket = connect(home.socket);
    socket.on('error', () => undefined);
    socket.resume();
    silent.push(socket);
  }
  expect(await worstRoundTrip()).toBeLessThan(2000);
  const enqueued = await good.request('enqueue', { task: 'none', args: {} });
  expect(enqueued.type).toBe('enqueued');
  await broker.event('peer.refused');
  const slow = silent.filter((socket) => !socket.destroyed);
  for (const socket of slow) socket.write(Buffer.from([0, 0]));
  await broker.event('peer.hello_timeout', 20_000);
  await gone(silent);
  const later = await RawPeer.client(home.socket);
  await later.close();
}, 60_000);

test('an announced length costs no memory before its bytes come', async () => {
  const before = broker.residentBytes;
  const peers = await Promise.all(Array.from({ length: 40 }, () => RawPeer.connect(home.socket)));
  for (const peer of peers) peer.socket.write(Buffer.from([0, 15, 255, 255, 0x7b]));
  expect(await worstRoundTrip()).toBeLessThan(2000);
  expect(broker.residentBytes - before).toBeLessThan(30_000_000);
  for (const peer of peers) await peer.close();
});

test('a peer that asks and never reads is paused, then cut off; the broker keeps its memory and its manners', async () => {
  const before = broker.residentBytes;
  const deaf = await RawPeer.client(home.socket, { runtime_id: 'deaf' });
  deaf.socket.pause();
  const job = await good.request('enqueue', { task: 'none', args: { text: 'x'.repeat(200_000) } });
  const ask = frame(JSON.stringify({ version: 1, type: 'status', request_id: 'a', job_id: job['job_id'] }));
  const many = Buffer.concat(Array.from({ length: 2000 }, () => ask));
  deaf.socket.write(many);
  expect(await worstRoundTrip()).toBeLessThan(3000);
  expect(broker.residentBytes - before).toBeLessThan(200_000_000);
  await deaf.close();
});

test('an executor that floods reports and progress slows nobody down', async () => {
  const flood = await RawPeer.worker(home.socket, ['flood'], { runtime_id: 'flood' });
  const progress = frame(
    JSON.stringify({
      version: 1,
      type: 'progress',
      request_id: 'p',
      reservation_id: 'r',
      execution_id: 'e',
      progress: { stage: 'x' },
    }),
  );
  const report = frame(
    JSON.stringify({
      version: 1,
      type: 'succeeded',
      request_id: 'r',
      reservation_id: 'r',
      execution_id: 'e',
      result: 1,
    }),
  );
  const many = Buffer.concat(Array.from({ length: 5000 }, (_, n) => (n % 2 === 0 ? progress : report)));
  for (let n = 0; n < 4; n++) flood.socket.write(many);
  expect(await worstRoundTrip()).toBeLessThan(3000);
  await flood.close();
});

test('a watcher of a job that makes progress ten thousand times hears ten a second at most, and the end', async () => {
  const worker = await RawPeer.worker(home.socket, ['busy'], { runtime_id: 'busy' });
  const watcher = await RawPeer.client(home.socket);
  const { job_id } = await watcher.request('enqueue', { task: 'busy', args: {}, watch: true });
  const { ids } = await worker.execute();
  const before = performance.now();
  const texts = Array.from({ length: 10_000 }, (_, n) =>
    frame(
      JSON.stringify({
        version: 1,
        type: 'progress',
        request_id: 'p',
        ...ids,
        progress: { stage: 'run', percent: n / 100 },
      }),
    ),
  );
  worker.socket.write(Buffer.concat(texts));
  await worker.request('succeeded', { ...ids, result: 1 });
  await watcher.take((message) => message.type === 'job_settled' && message['job_id'] === job_id);
  const heard = watcher.inbox.filter((message) => message.type === 'job_progress').length;
  expect(heard).toBeLessThanOrEqual(2 + (performance.now() - before) / 100);
  await worker.close();
  await watcher.close();
});

test.each<[string, string]>([
  [
    '64 levels of arrays in args',
    `{"version":1,"type":"enqueue","request_id":"a","task":"t","args":{"a":${'['.repeat(64)}${']'.repeat(64)}}}`,
  ],
  [
    '10,001 values in args',
    `{"version":1,"type":"enqueue","request_id":"a","task":"t","args":{"a":[${'1,'.repeat(10_001)}1]}}`,
  ],
  [
    'a key of 5,000 bytes in args',
    `{"version":1,"type":"enqueue","request_id":"a","task":"t","args":{"${'k'.repeat(5000)}":1}}`,
  ],
])('%s: a plain connection gets a correlated refusal and stays', async (_name, text) => {
  const peer = await RawPeer.connect(home.socket);
  await peer.request('hello', { mode: 'client', runtime_id: 'deep' });
  peer.sendText(text);
  expect(await peer.take((message) => message.request_id === 'a')).toMatchObject({
    error: { code: 'invalid_enqueue' },
  });
  expect((await peer.request('heartbeat')).type).toBe('heartbeat_ok');
  await peer.close();
});

test('a bomb of a million brackets ends only its sender', async () => {
  const peer = await RawPeer.client(home.socket);
  peer.sendText(`{"version":1,"type":"enqueue","request_id":"a","task":"t","args":${'['.repeat(1_000_000)}`);
  expect(await peer.take('error')).toMatchObject({ error: { code: 'malformed_json' } });
  await peer.closed;
  expect(await worstRoundTrip(3)).toBeLessThan(2000);
});

test('however the bytes are cut and glued, the same requests are answered', async () => {
  const requests = [
    '{"version":1,"type":"heartbeat","request_id":"a"}',
    '{"v":1,"type":"status","request_id":"ü😀","job_id":"x"}',
    '{"version":1,"type":"heartbeat","request_id":"c"}',
  ];
  const bytes = Buffer.concat(requests.map(frame));
  const peer = await RawPeer.client(home.socket);
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 8 }), async (cuts) => {
      const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      for (let n = 1; n < places.length; n++) {
        await new Promise<void>((resolve) =>
          peer.socket.write(bytes.subarray(places[n - 1], places[n]), () => resolve()),
        );
      }
      const answers = [];
      for (const id of ['a', 'ü😀', 'c']) answers.push((await peer.take((message) => message.request_id === id)).type);
      expect(answers).toEqual(['heartbeat_ok', 'error', 'heartbeat_ok']);
    }),
    { numRuns: 40 },
  );
  await peer.close();
});
