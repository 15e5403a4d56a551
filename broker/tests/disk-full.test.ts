/** A state directory without space: ops are refused, nothing that runs is lost, the broker stays up and recovers by itself. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BrokerHome } from './broker-process.js';
import { type Message, RawPeer } from './raw-peer.js';

let home: BrokerHome;
let small: string;
let mounted = false;

beforeEach(() => {
  home = new BrokerHome();
  small = join(home.directory, 'small');
  mkdirSync(small);
  mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=20m', 'tmpfs', small]).status === 0;
});
afterEach(async () => {
  for (const broker of home.running) await broker.kill();
  if (mounted) spawnSync('umount', [small]);
  await home.remove();
});

/** Takes every free byte of the small file system. */
function fill(name: string): string {
  const path = join(small, name);
  for (let bytes = 1_048_576; bytes >= 512; bytes /= 2) {
    for (;;) {
      try {
        writeFileSync(path, Buffer.alloc(bytes, 1), { flag: 'a' });
      } catch {
        break;
      }
    }
  }
  return path;
}

const code = (message: Message): unknown => (message['error'] as { code: string } | undefined)?.code;

async function untilRefused(client: RawPeer): Promise<Message> {
  for (let n = 0; ; n++) {
    const answer = await client.request('enqueue', { task: 'none', args: { filler: 'x'.repeat(50_000) } });
    if (answer.type === 'error') return answer;
    if (n > 1000) throw new Error('the disk does not fill');
  }
}

/** Waits for a file that the broker makes in its own time. */
async function untilThere(path: string): Promise<void> {
  for (const until = performance.now() + 10_000; !existsSync(path); await delay(20)) {
    if (performance.now() > until) throw new Error(`${path} did not appear`);
  }
}

test('the disk fills while a job runs: its result is kept, new work is refused with disk_full, space brings everything back', async () => {
  if (!mounted) {
    process.stderr.write('disk-full.test: this user may not mount a tmpfs; not tried\n');
    return;
  }
  const place = ['--state-dir', join(small, 'state')];
  const broker = await home.start(place);
  const worker = await RawPeer.worker(home.socket, ['t'], { pid: process.pid });
  const client = await RawPeer.client(home.socket);
  const running = await client.request('enqueue', { task: 't', args: {}, watch: true });
  const { ids } = await worker.execute();
  await untilThere(join(small, 'state', 'space-reserve'));
  const filler = fill('filler');
  expect(code(await untilRefused(client))).toBe('disk_full');
  await broker.event('broker.degraded');
  expect((await worker.request('succeeded', { ...ids, result: 'y'.repeat(100_000) })).type).toBe('accepted');
  expect(await client.take('job_settled')).toMatchObject({ job_id: running['job_id'], state: 'completed' });
  expect(code(await client.request('open_session', { session_id: 's', task: 't' }))).toBe('disk_full');
  expect(code(await client.request('schedule', { task: 't', every: { days: 1 } }))).toBe('disk_full');
  const stats = (await client.request('inspect', { what: 'stats' }))['data'] as {
    journal: { degraded: { code: string } };
  };
  expect(stats.journal.degraded).toMatchObject({
    code: 'disk_full',
    message: expect.any(String),
    since: expect.any(Number),
  });
  rmSync(filler);
  await broker.event('broker.recovered', 30_000);
  expect((await client.request('enqueue', { task: 'none', args: {} })).type).toBe('enqueued');

  await broker.kill();
  const again = fill('filler');
  const second = await home.start(place);
  await second.event('broker.degraded');
  const later = await RawPeer.client(home.socket);
  expect(await later.request('result', { job_id: running['job_id'] })).toMatchObject({
    type: 'result',
    result: 'y'.repeat(100_000),
  });
  expect(code(await later.request('enqueue', { task: 't', args: {} }))).toBe('disk_full');
  rmSync(again);
  await second.event('broker.recovered', 30_000);
  expect((await later.request('enqueue', { task: 'none', args: {} })).type).toBe('enqueued');
  expect(existsSync(join(small, 'state', 'space-reserve'))).toBe(true);
  for (const peer of [worker, client, later]) await peer.close();
}, 60_000);

test('SIGTERM ends a broker that can write nothing at all', async () => {
  if (!mounted) return;
  const broker = await home.start(['--state-dir', join(small, 'state')]);
  const worker = await RawPeer.worker(home.socket, ['t'], { pid: process.pid });
  const client = await RawPeer.client(home.socket);
  await client.request('enqueue', { task: 't', args: {} });
  const { ids } = await worker.execute();
  await untilThere(join(small, 'state', 'space-reserve'));
  fill('filler');
  await untilRefused(client);
  await broker.event('broker.degraded');
  fill('rest');
  // Larger than whatever is left: this report can be neither written nor accepted.
  worker.send({ version: 1, type: 'succeeded', request_id: 'r', ...ids, result: 'y'.repeat(4_000_000) });
  // What is said waits for what must be written: the broker has fallen silent.
  for (let answered = true, n = 0; answered; n++) {
    answered = await client.request('heartbeat', {}, `beat-${n}`, 500).then(
      () => true,
      () => false,
    );
  }
  const started = performance.now();
  expect(await broker.stop()).toBe(0);
  expect(performance.now() - started).toBeLessThan(12_000);
  expect(worker.inbox.filter((message) => message.type === 'accepted')).toEqual([]);
  for (const peer of [worker, client]) await peer.close();
}, 60_000);
