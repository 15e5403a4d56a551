/** A disk that does not answer: a plain Tay client is answered before its patience ends, and never after. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Broker } from '../src/broker.js';
import { SYSTEM_CLOCK } from '../src/clock.js';
import { newCore, type Settings, settingsOf } from '../src/core/index.js';
import { SystemEntropy } from '../src/entropy.js';
import { JournalArchive } from '../src/journal/archive.js';
import type { Journal } from '../src/journal/journal.js';
import { openJournal } from '../src/journal/opening.js';
import { createLog } from '../src/log.js';
import { SessionDirectories } from '../src/state/session-directories.js';
import { RawPeer } from './raw-peer.js';

/** A disk under the hand of a test: writes arrive at once, their confirmation when the test says so. */
class SlowDisk {
  held = false;
  #waiting: ((error: null) => void)[] = [];

  later(done: (error: null) => void): void {
    if (this.held) this.#waiting.push(done);
    else setImmediate(() => done(null));
  }

  confirm(): void {
    this.held = false;
    for (const done of this.#waiting.splice(0)) done(null);
  }
}

let directory: string;
let server: Server;
let broker: Broker;
let journal: Journal;
let disk: SlowDisk;
let commitError: Error | null;
const peers: RawPeer[] = [];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'rhl-'));
  disk = new SlowDisk();
  commitError = null;
  const directories = new SessionDirectories(directory);
  const opened = openJournal(directory, 'normal', 'x');
  ({ journal } = opened);
  const archive = new JournalArchive(opened, directories);
  const settings = settingsOf({ replyTimeoutMs: 300 }) as Settings;
  const identity = { version: '0', instance: 'i', generation: 1 };
  const core = newCore(settings, identity, archive, new SystemEntropy(), SYSTEM_CLOCK.now(), 1);
  const commit = journal.commit.bind(journal);
  const file = Object.assign(journal, {
    log: () => disk as never,
    commit: (records: Parameters<typeof commit>[0]) => {
      if (commitError !== null) throw commitError;
      commit(records);
    },
  });
  const fail = (error: unknown): never => {
    throw error;
  };
  broker = new Broker({
    ...{ core, journal: file, directories, clock: SYSTEM_CLOCK, log: createLog('fatal') },
    onCommitFailed: () => false,
    onBroken: fail,
  });
  server = createServer((socket) => broker.accept(socket));
  await new Promise<void>((resolve) => server.listen(join(directory, 's'), resolve));
});
afterEach(async () => {
  commitError = null;
  disk.confirm();
  for (const peer of peers.splice(0)) await peer.close();
  broker.abandon();
  await new Promise((resolve) => server.close(resolve));
  journal.close();
  rmSync(directory, { recursive: true, force: true });
});

async function client(hello: Record<string, unknown>): Promise<RawPeer> {
  const peer = await RawPeer.client(join(directory, 's'), hello);
  peers.push(peer);
  return peer;
}
const code = (message: { readonly [field: string]: unknown }): unknown => (message['error'] as { code: unknown }).code;

test('a reply that waits for the disk is replaced in time, and does not come afterwards; who asks again with the id learns what became of it', async () => {
  const plain = await client({ extensions: [] });
  const extended = await client({});
  const known = await plain.request('enqueue', { task: 't', args: {} });
  disk.held = true;
  const request = { task: 't', args: {}, options: { submission_id: 'a' } };
  const waiting = extended.request('enqueue', { task: 't', args: {} });
  expect(code(await plain.request('enqueue', request))).toBe('unknown_outcome');
  expect(code(await plain.request('status', { job_id: known['job_id'] }))).toBe('request_timeout');
  expect(code(await plain.request('cancel', { job_id: known['job_id'] }))).toBe('unknown_outcome');
  expect(extended.inbox).toEqual([]);
  disk.confirm();
  expect((await waiting).type).toBe('enqueued');
  expect(await plain.request('enqueue', request)).toMatchObject({ type: 'enqueued', job: { state: 'available' } });
  expect(await plain.request('status', { job_id: known['job_id'] })).toMatchObject({ status: 'cancelled' });
  expect(plain.inbox).toEqual([]);
});

test('orders and the acceptance of reports are never replaced', async () => {
  const worker = await client({ extensions: [], mode: 'worker', max_concurrency: 1 });
  await worker.request('register_tasks', { tasks: ['t'] });
  const plain = await client({ extensions: [], runtime_id: 'producer' });
  const enqueued = await plain.request('enqueue', { task: 't', args: {} });
  const { ids } = await worker.execute();
  disk.held = true;
  const accepted = worker.request('succeeded', { ...ids, result: 1 });
  expect(code(await plain.request('status', { job_id: enqueued['job_id'] }))).toBe('request_timeout');
  expect(worker.inbox).toEqual([]);
  disk.confirm();
  expect((await accepted).type).toBe('accepted');
  expect(await plain.request('result', { job_id: enqueued['job_id'] })).toMatchObject({ type: 'result', result: 1 });
});

test('a producer whose requests are not read, because nothing can be written, is let go before they would be answered too late', async () => {
  const plain = await client({ extensions: [] });
  const other = await client({ extensions: [], runtime_id: 'other' });
  commitError = new Error('nothing can be written');
  expect(code(await plain.request('enqueue', { task: 't', args: {} }))).toBe('unknown_outcome');
  other.send({ version: 1, type: 'status', request_id: 'unread', job_id: 'a'.repeat(32) });
  await other.closed;
  expect(other.inbox).toEqual([]);
  commitError = null;
  const back = await client({ extensions: [], runtime_id: 'other' });
  expect((await back.request('heartbeat')).type).toBe('heartbeat_ok');
});
