/** Another process reads the journal for long: its WAL stays bounded, new work is refused with a clear code, nothing is lost, and it ends by itself. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BrokerHome } from './broker-process.js';
import { type Message, RawPeer } from './raw-peer.js';

const BOUND = 33_554_432;
/** What can be written between two looks at the size, and by what still ends. */
const SLACK = 16_777_216;

let home: BrokerHome;
let reader: ChildProcess | null = null;
beforeEach(() => {
  home = new BrokerHome();
});
afterEach(async () => {
  await stopReading();
  await home.remove();
});

/** Begins to read the journal in a process of its own, and stays at it. */
async function startReading(path: string): Promise<void> {
  const script = `
    const database = new (require('better-sqlite3'))(process.argv[1], { readonly: true });
    database.exec('BEGIN');
    database.prepare('SELECT count(*) FROM jobs').get();
    process.stdout.write('reading');
    setInterval(() => undefined, 60_000);`;
  reader = spawn(process.execPath, ['-e', script, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(reader.stdout as NodeJS.ReadableStream, 'data');
}

async function stopReading(): Promise<void> {
  if (reader === null) return;
  const ended = once(reader, 'exit');
  reader.kill('SIGKILL');
  reader = null;
  await ended;
}

const error = (message: Message): { code?: string; reason?: string; message?: string } =>
  (message['error'] ?? {}) as { code?: string; reason?: string; message?: string };

test('the WAL stays under its bound however long somebody reads; new work is refused meanwhile, what runs ends, and all is there afterwards', async () => {
  const flags = ['--durability', 'normal', '--limit', `max_wal_bytes=${BOUND}`];
  const broker = await home.start(flags);
  const journal = join(home.stateDir, 'broker.sqlite');
  const walBytes = (): number => statSync(`${journal}-wal`).size;
  const worker = await RawPeer.worker(home.socket, ['t'], { pid: process.pid });
  const client = await RawPeer.client(home.socket);
  const running = await client.request('enqueue', { task: 't', args: {}, watch: true });
  const { ids } = await worker.execute();
  await startReading(journal);

  const args = { filler: 'x'.repeat(100_000) };
  let accepted = 0;
  let refused: Message | null = null;
  while (refused === null) {
    const batch = Array.from({ length: 16 }, () => client.request('enqueue', { task: 'none', args }));
    for (const answer of await Promise.all(batch)) {
      if (answer.type === 'enqueued') accepted++;
      else refused ??= answer;
    }
    expect(walBytes()).toBeLessThan(BOUND + SLACK);
  }
  expect(error(refused)).toMatchObject({ code: 'unavailable', reason: 'journal_error' });
  expect(error(refused).message).toContain('another process reads the journal');
  await broker.event('broker.degraded');

  // Nobody waits for the reader: every answer comes at once.
  for (let n = 0; n < 20; n++) {
    const answer = await client.request('enqueue', { task: 'none', args }, `again-${n}`, 3000);
    expect(error(answer).code).toBe('unavailable');
  }
  expect(error(await client.request('open_session', { session_id: 's', task: 't' })).code).toBe('unavailable');
  expect(error(await client.request('schedule', { task: 't', every: { days: 1 } })).code).toBe('unavailable');
  const stats = (await client.request('inspect', { what: 'stats' }))['data'] as { journal: { degraded: unknown } };
  expect(stats.journal.degraded).toMatchObject({ code: 'journal_error', since: expect.any(Number) });
  expect((await worker.request('succeeded', { ...ids, result: 'y'.repeat(100_000) })).type).toBe('accepted');
  expect(await client.take('job_settled')).toMatchObject({ job_id: running['job_id'], state: 'completed' });
  expect(walBytes()).toBeLessThan(BOUND + SLACK);

  await stopReading();
  await broker.event('broker.recovered');
  expect(walBytes()).toBeLessThanOrEqual(BOUND);
  expect((await client.request('enqueue', { task: 'none', args: {} })).type).toBe('enqueued');
  accepted++;

  await broker.kill();
  await home.start(flags);
  const later = await RawPeer.client(home.socket);
  const after = (await later.request('inspect', { what: 'stats' }))['data'] as { journal: { jobs: unknown } };
  expect(after.journal.jobs).toEqual({ available: accepted, completed: 1 });
  expect(await later.request('result', { job_id: running['job_id'] })).toMatchObject({ result: 'y'.repeat(100_000) });
  for (const peer of [worker, client, later]) await peer.close();
}, 60_000);
