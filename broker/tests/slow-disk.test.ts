/** A disk that takes its time: nothing is said before it has answered, requests are taken in meanwhile, and turns stay in order. Its answers are given by hand. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Broker } from '../src/broker.js';
import { SYSTEM_CLOCK } from '../src/clock.js';
import { DEFAULT_SETTINGS, newCore } from '../src/core/index.js';
import { SystemEntropy } from '../src/entropy.js';
import { JournalArchive } from '../src/journal/archive.js';
import type { Journal } from '../src/journal/journal.js';
import { openJournal } from '../src/journal/opening.js';
import { createLog } from '../src/log.js';
import { SessionDirectories } from '../src/state/session-directories.js';
import { RawPeer } from './raw-peer.js';

/** A disk that answers when it is told to. */
class Disk {
  isQuick = false;
  readonly flushes: ((error: NodeJS.ErrnoException | null) => void)[] = [];
  waitedFor = 0;
  #onFlush: () => void = () => undefined;

  later(done: (error: NodeJS.ErrnoException | null) => void): void {
    this.flushes.push(done);
    this.#onFlush();
  }

  now(): void {
    this.waitedFor++;
  }

  /** Resolves when so many flushes have been asked for. */
  async asked(count: number): Promise<void> {
    while (this.flushes.length < count) {
      await new Promise<void>((resolve) => {
        this.#onFlush = resolve;
      });
    }
  }

  answer(at: number, error: NodeJS.ErrnoException | null = null): void {
    this.flushes[at]?.(error);
  }
}

let directory: string;
let socket: string;
let disk: Disk;
let journal: Journal;
let server: Server;
let broker: Broker;
let broken: unknown[];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'rhd-'));
  socket = join(directory, 's');
  disk = new Disk();
  broken = [];
  const directories = new SessionDirectories(directory);
  const opened = openJournal(directory, 'normal', 'x');
  journal = opened.journal;
  const archive = new JournalArchive(opened, directories);
  const identity = { version: '1', instance: opened.instance, generation: 1 };
  const core = newCore(DEFAULT_SETTINGS, identity, archive, new SystemEntropy(), SYSTEM_CLOCK.now(), opened.nextSeq);
  broker = new Broker({
    core,
    journal: {
      commit: (records) => journal.commit(records),
      readArgs: (job) => journal.readArgs(job),
      log: () => disk,
    },
    directories,
    clock: SYSTEM_CLOCK,
    log: createLog('silent'),
    onCommitFailed: (error) => {
      throw error;
    },
    onBroken: (error) => broken.push(error),
  });
  server = createServer((peer) => broker.accept(peer)).listen(socket);
  await once(server, 'listening');
});
afterEach(async () => {
  broker.abandon();
  server.close();
  await once(server, 'close');
  journal.close();
  rmSync(directory, { recursive: true, force: true });
});

const job = (n: number) => ({ task: 't', args: { n } });

test('nothing of a turn is said before the disk has it; what comes meanwhile is one later turn, told after it', async () => {
  const one = await RawPeer.client(socket);
  const two = await RawPeer.client(socket, { runtime_id: 'two' });
  const first = one.request('enqueue', job(1), 'first');
  await disk.asked(1);
  const later = [one.request('enqueue', job(2), 'second'), two.request('enqueue', job(3), 'third')];
  const beat = two.request('heartbeat', {}, 'beat');
  // What was sent is taken in by turns of the event loop; a connection made meanwhile shows that they go on.
  const three = await RawPeer.connect(socket);
  expect([one.texts.length, two.texts.length]).toEqual([1, 1]);
  expect(disk.flushes).toHaveLength(1);
  expect(journal.load().jobs).toHaveLength(1);
  disk.answer(0);
  expect((await first).type).toBe('enqueued');
  await disk.asked(2);
  expect(two.texts).toHaveLength(1);
  disk.answer(1);
  expect((await Promise.all([...later, beat])).map(({ type }) => type)).toEqual([
    'enqueued',
    'enqueued',
    'heartbeat_ok',
  ]);
  expect(one.texts.map((text) => JSON.parse(text).request_id).slice(1)).toEqual(['first', 'second']);
  expect(journal.load().jobs).toHaveLength(3);
  for (const peer of [one, two, three]) await peer.close();
});

test('one flush at a time, whatever is asked while the last one is told', async () => {
  const peer = await RawPeer.client(socket);
  const replies: Promise<unknown>[] = [];
  for (let n = 0; n < 20; n++) {
    replies.push(peer.request('enqueue', job(n)), peer.request('heartbeat'));
    await disk.asked(1);
    expect(disk.flushes).toHaveLength(1);
    disk.flushes.shift()?.(null);
  }
  const all = Promise.all(replies).then(() => 'told');
  for (;;) {
    const next = await Promise.race([all, disk.asked(1).then(() => 'asked')]);
    if (next === 'told') break;
    expect(disk.flushes).toHaveLength(1);
    disk.flushes.shift()?.(null);
  }
  expect(journal.load().jobs).toHaveLength(20);
  await peer.close();
});

/** Lets the event loop go round until the journal has so many jobs. */
async function committed(jobs: number): Promise<void> {
  while (journal.load().jobs.length < jobs) await (await RawPeer.connect(socket)).close();
}

/** What is sent meanwhile arrives at once. */
function together<T>(peer: RawPeer, send: () => T): T {
  peer.socket.cork();
  const sent = send();
  peer.socket.uncork();
  return sent;
}

const many = (from: number, count: number): number[] => Array.from({ length: count }, (_unused, at) => from + at);

test('a turn worth it goes to the disk while the last one is there, two at most, and they are told in order', async () => {
  const peer = await RawPeer.client(socket);
  const ask = (n: number) => peer.request('enqueue', job(n), `n${n}`);
  const told = (): string[] => peer.texts.slice(1).map((text) => JSON.parse(text).request_id);
  const first = ask(0);
  await disk.asked(1);
  const second = together(peer, () => many(1, 24).map(ask));
  await disk.asked(2);
  const third = together(peer, () => many(25, 24).map(ask));
  for (let round = 0; round < 5; round++) await (await RawPeer.connect(socket)).close();
  expect([disk.flushes.length, journal.load().jobs.length, told()]).toEqual([2, 25, []]);
  // The second is safe first: it is told after the first all the same.
  disk.answer(1);
  expect(told()).toEqual([]);
  disk.answer(0);
  await Promise.all([first, ...second]);
  await disk.asked(3);
  expect([journal.load().jobs.length, told().length]).toEqual([49, 25]);
  disk.answer(2);
  await Promise.all(third);
  expect(told()).toEqual(many(0, 49).map((n) => `n${n}`));
  await peer.close();
});

test('of many requests that arrive at once half stay behind, and are taken in while the disk is at work on the others', async () => {
  const peer = await RawPeer.client(socket);
  const replies = together(peer, () => many(0, 40).map((n) => peer.request('enqueue', job(n))));
  await disk.asked(1);
  expect(journal.load().jobs).toHaveLength(32);
  disk.answer(0);
  await disk.asked(2);
  expect(journal.load().jobs).toHaveLength(40);
  disk.answer(1);
  expect(new Set((await Promise.all(replies)).map(({ type }) => type))).toEqual(new Set(['enqueued']));
  await peer.close();
});

test('a disk that fails takes the turn behind it along', async () => {
  const peer = await RawPeer.client(socket);
  const ask = (n: number) => peer.request('enqueue', job(n)).catch(() => 'never');
  const replies = together(peer, () => many(0, 30).map(ask));
  await disk.asked(1);
  replies.push(...together(peer, () => many(30, 30).map(ask)));
  await committed(60);
  disk.answer(0, Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' }));
  expect(broken).toHaveLength(1);
  broker.abandon();
  expect(new Set(await Promise.all(replies))).toEqual(new Set(['never']));
  expect(peer.texts).toHaveLength(1);
});

test('a small turn waits for a disk that is quick', async () => {
  disk.isQuick = true;
  const peer = await RawPeer.client(socket);
  expect((await peer.request('enqueue', job(1))).type).toBe('enqueued');
  expect([disk.waitedFor, disk.flushes.length]).toEqual([1, 0]);
  await peer.close();
});

test('a stop waits for the turn at the disk and for the one after it', async () => {
  const peer = await RawPeer.client(socket);
  const first = peer.request('enqueue', job(1));
  await disk.asked(1);
  const stopped = broker.stop();
  disk.answer(0);
  expect((await first).type).toBe('enqueued');
  await stopped;
  await peer.closed;
});

test('a disk that fails ends the broker, and nobody hears of what it may not have', async () => {
  const peer = await RawPeer.client(socket);
  const reply = peer.request('enqueue', job(1)).catch(() => 'never');
  await disk.asked(1);
  const failure = Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' });
  disk.answer(0, failure);
  expect(broken).toEqual([failure]);
  broker.abandon();
  expect(await reply).toBe('never');
  expect(peer.texts).toHaveLength(1);
});
