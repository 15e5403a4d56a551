/** What all connections leave in the broker's memory together is bounded: who is stuck pays for it, and nobody else. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BrokerHome, type BrokerProcess } from './broker-process.js';
import { frame, RawPeer } from './raw-peer.js';

const MIB = 1_048_576;
const home = new BrokerHome();
let broker: BrokerProcess;
let good: RawPeer;

beforeAll(async () => {
  broker = await home.start(['--limit', 'max_unread_total_bytes=32MiB']);
  good = await RawPeer.client(home.socket);
});
afterAll(async () => {
  await good.close();
  await home.remove();
});

const peers = (count: number): Promise<RawPeer[]> =>
  Promise.all(Array.from({ length: count }, (_, n) => RawPeer.client(home.socket, { runtime_id: `mad-${n}` })));

/** All but the end of a frame of so many bytes; resolves when the broker has taken it, or the connection has ended. */
function begin(peer: RawPeer, bytes: number): Promise<void> {
  const part = Buffer.alloc(bytes, ' ');
  part.writeUInt32BE(bytes + 1, 0);
  return new Promise((resolve) => {
    peer.socket.write(part, () => resolve());
    peer.socket.once('close', () => resolve());
  });
}

/** Whether the broker still answers it; it must not be in the middle of a frame. */
const answers = async (peer: RawPeer): Promise<boolean> => (await peer.request('heartbeat')).type === 'heartbeat_ok';

test('unfinished frames of many: the ones begun first are ended and told so, neither the last ones nor who holds little, large requests are served meanwhile', async () => {
  const before = broker.residentBytes;
  const little = await RawPeer.client(home.socket, { runtime_id: 'little' });
  const late = frame(JSON.stringify({ version: 1, type: 'heartbeat', request_id: 'late' }));
  little.socket.write(late.subarray(0, 9));
  const mad = await peers(40);
  const size = 7 * MIB;
  const flood = (async () => {
    for (const peer of mad) await begin(peer, size);
  })();
  let flooding = true;
  void flood.finally(() => {
    flooding = false;
  });
  let worst = 0;
  let largest = 0;
  for (let n = 0; flooding; n++) {
    const since = performance.now();
    const text = 'x'.repeat(n % 8 === 7 ? 4 * MIB : 10);
    expect((await good.request('enqueue', { task: 'none', args: { text } })).type).toBe('enqueued');
    worst = Math.max(worst, performance.now() - since);
    largest = Math.max(largest, broker.residentBytes);
  }
  // 32 MiB hold four of these frames.
  for (const peer of mad.slice(0, -4)) {
    expect(await peer.take('error')).toMatchObject({ error: { code: 'buffer_limit' } });
    await peer.closed;
  }
  for (const peer of mad.slice(-4)) expect(peer.inbox).toEqual([]);
  little.socket.write(late.subarray(9));
  expect((await little.take((message) => message.request_id === 'late')).type).toBe('heartbeat_ok');
  expect(worst).toBeLessThan(2000);
  expect(largest - before).toBeLessThan(250 * MIB);
  for (const peer of [...mad, little]) await peer.close();
}, 30_000);

test('answers that many do not read: some are cut off, the others read all of theirs', async () => {
  const before = broker.residentBytes;
  const { job_id } = await good.request('enqueue', { task: 'none', args: { text: 'x'.repeat(4 * MIB) } });
  const deaf = await peers(20);
  for (const peer of deaf) {
    peer.socket.pause();
    peer.send({ version: 1, type: 'status', request_id: 'deaf', job_id });
    expect(await answers(good)).toBe(true);
  }
  expect(await broker.event('peer.cut_off')).toMatchObject({ reason: 'unread_total' });
  expect(broker.residentBytes - before).toBeLessThan(250 * MIB);
  let served = 0;
  for (const peer of deaf) {
    peer.socket.resume();
    const answer = peer
      .take((message) => message.request_id === 'deaf')
      .then(
        () => true,
        () => false,
      );
    if (await answer) served++;
  }
  // 32 MiB hold seven of these answers.
  expect(served).toBeGreaterThanOrEqual(6);
  expect(served).toBeLessThan(20);
  for (const peer of deaf) await peer.close();
}, 30_000);
