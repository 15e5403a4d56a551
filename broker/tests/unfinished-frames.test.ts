/** A frame that was begun comes to its end in time, or its connection does: alone, and never because of the broker itself. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BrokerHome, type BrokerProcess } from './broker-process.js';
import { CoreBench } from './core-bench.js';
import { frame, RawPeer } from './raw-peer.js';

let home: BrokerHome;
let broker: BrokerProcess;
let good: RawPeer;
beforeEach(async () => {
  home = new BrokerHome();
  broker = await home.start(['--limit', 'frame_timeout_ms=300', '--limit', 'hello_timeout_ms=900']);
  good = await RawPeer.client(home.socket);
});
afterEach(async () => {
  await good.close();
  await home.remove();
});

/** Lets more than twice the time of a frame pass, by the broker's own clock: a silent connection is told so. */
async function passTime(): Promise<void> {
  const silent = await RawPeer.connect(home.socket);
  expect(await silent.take('error')).toMatchObject({ error: { code: 'hello_timeout' } });
  await silent.closed;
}

const heartbeat = (id: string): Buffer => frame(JSON.stringify({ version: 1, type: 'heartbeat', request_id: id }));

test('a frame that is never finished ends its connection, a slow one that moves does not restart its time, a whole one does', () => {
  const bench = new CoreBench({ frameTimeoutMs: 1000 });
  const peer = bench.client();
  bench.partial(peer, false);
  bench.pass(600);
  bench.partial(peer, false);
  bench.pass(350);
  expect(bench.overdue).toEqual([]);
  bench.partial(peer, true);
  bench.pass(990);
  expect(bench.overdue).toEqual([]);
  bench.pass(20);
  expect(bench.overdue).toEqual([peer]);
  const calm = bench.client();
  bench.partial(calm, false);
  bench.whole(calm);
  bench.pass(5000);
  bench.partial(calm, false);
  bench.pass(900);
  expect(bench.overdue).toEqual([peer]);
});

test('a frame in small pieces is served as long as it comes to its end', async () => {
  const bytes = heartbeat('slow');
  for (let at = 0; at < bytes.length; at += 16) {
    await new Promise<void>((resolve) => good.socket.write(bytes.subarray(at, at + 16), () => resolve()));
  }
  expect((await good.take((message) => message.request_id === 'slow')).type).toBe('heartbeat_ok');
});

test.each([
  ['three bytes of a header', heartbeat('never').subarray(0, 3)],
  ['half a body', heartbeat('never').subarray(0, 20)],
])(
  '%s and then silence: that connection ends, what ran on it is interrupted, nobody else notices',
  async (_name, bytes) => {
    const worker = await RawPeer.worker(home.socket, ['t'], { extensions: [] });
    const idle = await RawPeer.worker(home.socket, ['other'], { runtime_id: 'idle' });
    const { job_id } = await good.request('enqueue', { task: 't', args: {}, options: { retries: 1 } });
    await worker.execute();
    worker.socket.write(bytes);
    expect(await worker.take('error')).toEqual({
      version: 1,
      type: 'error',
      error: { code: 'frame_timeout', message: 'a frame was begun and not completed in time' },
    });
    await worker.closed;
    expect(await broker.event('peer.frame_timeout')).toMatchObject({ bytes: bytes.length });
    expect(await good.request('status', { job_id })).toMatchObject({
      job: { state: 'retryable', errors: [{ code: 7 }] },
    });
    expect((await idle.request('heartbeat')).type).toBe('heartbeat_ok');
    await idle.close();
  },
);

test('silence between two frames is nobody’s fault, and neither is a frame that the broker itself does not read on', async () => {
  const slow = await RawPeer.client(home.socket, { runtime_id: 'slow' });
  const { job_id } = await good.request('enqueue', { task: 'none', args: { text: 'x'.repeat(250_000) } });
  slow.socket.pause();
  const ask = (id: string): Buffer => frame(JSON.stringify({ version: 1, type: 'status', request_id: id, job_id }));
  // Answers that are not read until nothing more is read from their reader, in the middle of a frame.
  slow.socket.write(Buffer.concat(['a', 'b', 'c', 'd'].map(ask)));
  for (let n = 0; n < 3; n++) await good.request('heartbeat');
  slow.socket.write(Buffer.concat([...['e', 'f', 'g', 'h'].map(ask), heartbeat('late').subarray(0, 10)]));
  await passTime();
  expect(broker.lines.map(({ event }) => event)).not.toContain('peer.frame_timeout');
  slow.socket.resume();
  slow.socket.write(heartbeat('late').subarray(10));
  expect((await slow.take((message) => message.request_id === 'late')).type).toBe('heartbeat_ok');
  expect((await good.request('heartbeat')).type).toBe('heartbeat_ok');
  await slow.close();
});
