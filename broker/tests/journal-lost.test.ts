/** A journal that lost its log between two runs opens, but never without a word; one that is emptied while it is in use ends the broker at once. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import SQLite from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type OpenedJournal, openJournal } from '../src/journal/opening.js';
import { BrokerHome } from './broker-process.js';
import { finishedJob, recordsOf } from './journal-rows.js';
import { RawPeer } from './raw-peer.js';

const NOW = 1_767_225_600_000;
let directory: string;
/** A state directory in use, and what a process that was killed would leave of it. */
let used: string;
let left: string;
let open: OpenedJournal[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'rhl-'));
  [used, left] = [join(directory, 'used'), join(directory, 'left')];
  open = [];
});
afterEach(() => {
  for (const opened of open) close(opened);
  rmSync(directory, { recursive: true, force: true });
});

function close(opened: OpenedJournal): void {
  opened.journal.close();
  opened.mark.close();
}

function start(state: string): OpenedJournal {
  mkdirSync(state, { recursive: true });
  const opened = openJournal(state, 'full', 'x');
  open.push(opened);
  opened.mark.note(opened.instance, opened.generation);
  return opened;
}

function accept(opened: OpenedJournal, first: number, count = 3): void {
  for (let n = first; n < first + count; n++) opened.journal.commit(recordsOf([finishedJob(n, NOW)]));
  opened.mark.note(opened.instance, opened.generation);
}

function kill(): void {
  mkdirSync(left);
  for (const name of ['', '-wal', '.in-use'])
    copyFileSync(join(used, `broker.sqlite${name}`), join(left, `broker.sqlite${name}`));
}

const wal = (): string => join(left, 'broker.sqlite-wal');
const jobs = (opened: OpenedJournal): unknown =>
  opened.journal.database.prepare('SELECT count(*) FROM jobs').pluck().get();

/** The log of a journal that has nothing to do with this one. */
function foreignLog(): Buffer {
  const other = start(join(directory, 'other'));
  accept(other, 1, 20);
  return readFileSync(join(directory, 'other', 'broker.sqlite-wal'));
}

const MISSING = 'missing or cut';
const DAMAGES: readonly (readonly [string, () => void, string, boolean])[] = [
  ['deleted', () => rmSync(wal()), MISSING, false],
  ['emptied', () => truncateSync(wal()), MISSING, false],
  ['cut behind its first page', () => truncateSync(wal(), 32 + 4120), MISSING, false],
  ['spoilt in the middle', () => writeFileSync(wal(), readFileSync(wal()).fill(0xa5, 100, 5000)), MISSING, false],
  ['replaced by garbage', () => writeFileSync(wal(), Buffer.alloc(50_000, 0x5a)), MISSING, true],
  ['replaced by that of another journal', () => writeFileSync(wal(), foreignLog()), MISSING, true],
];

test.each(DAMAGES)('a log that was %s after a kill is missed', (_what, damage, reason, keeps) => {
  const opened = start(used);
  accept(opened, 1);
  opened.journal.database.pragma('wal_checkpoint(PASSIVE)');
  accept(opened, 10);
  kill();
  damage();
  const again = start(left);
  expect(again.lost?.reason).toContain(reason);
  expect(again.setAside).toBeNull();
  expect(jobs(again)).toBeLessThan(6);
  expect(jobs(again)).toBeGreaterThanOrEqual(3);
  expect(again.lost?.kept).toBe(keeps ? `${wal()}.foreign-x` : null);
  if (keeps) expect(existsSync(`${wal()}.foreign-x`)).toBe(true);
});

test('without a checkpoint nothing of the run is left, and a journal in the place of another is told apart', () => {
  const first = start(used);
  first.mark.remove();
  close(first);
  open = [];
  accept(start(used), 1);
  kill();
  rmSync(wal());
  expect(start(left).lost?.reason).toContain('the log of the last run is gone');

  const another = start(join(directory, 'another'));
  another.mark.remove();
  close(another);
  open.pop();
  copyFileSync(join(used, 'broker.sqlite.in-use'), join(directory, 'another', 'broker.sqlite.in-use'));
  expect(start(join(directory, 'another')).lost?.reason).toContain('another journal');
});

test('nothing is missed after a kill alone, whatever the log was doing, nor after an orderly end or the use of an older release', () => {
  const opened = start(used);
  const check = (): void => {
    kill();
    const again = start(left);
    expect(again.lost).toBeNull();
    expect(jobs(again)).toBe(jobs(opened));
    rmSync(left, { recursive: true });
  };
  check();
  accept(opened, 1);
  check();
  opened.journal.database.pragma('wal_checkpoint(PASSIVE)');
  check();
  accept(opened, 10);
  check();
  // Beyond the mark: it is some moments old.
  opened.journal.commit(recordsOf([finishedJob(50, NOW)]));
  check();
  opened.journal.database.pragma('wal_checkpoint(PASSIVE)');
  opened.journal.commit(recordsOf([finishedJob(51, NOW)]));
  check();
  opened.journal.database.pragma('wal_checkpoint(TRUNCATE)');
  opened.mark.note(opened.instance, opened.generation);
  check();
  accept(opened, 60);
  kill();
  const older = new SQLite(join(left, 'broker.sqlite'));
  older.prepare(`UPDATE meta SET value = value + 1 WHERE key = 'generation'`).run();
  older.close();
  expect(start(left).lost).toBeNull();
  rmSync(left, { recursive: true });
  opened.mark.remove();
  close(opened);
  open = open.filter((each) => each !== opened);
  expect(readdirSync(used)).toEqual(['broker.sqlite']);
  expect(start(used).lost).toBeNull();
});

test('a broker says in its log and its status what was lost, serves, and the next start is a good one', async () => {
  const home = new BrokerHome();
  try {
    const broker = await home.start();
    const client = await RawPeer.client(home.socket);
    expect((await client.request('enqueue', { task: 'none', args: {} })).type).toBe('enqueued');
    await broker.kill();
    await client.closed;
    rmSync(join(home.stateDir, 'broker.sqlite-wal'));
    const second = await home.start();
    expect(await second.event('journal.lost')).toMatchObject({
      level: 50,
      reason: expect.stringContaining('the log of the last run is gone'),
    });
    const late = await RawPeer.client(home.socket);
    const { data } = await late.request('inspect', { what: 'stats' });
    expect(data).toMatchObject({ journal: { lost: expect.stringContaining('the log'), degraded: null } });
    expect((await late.request('enqueue', { task: 'none', args: {} })).type).toBe('enqueued');
    await late.close();
    await second.kill();
    const third = await home.start();
    expect(await third.stop()).toBe(0);
    expect(third.lines.map(({ event }) => event)).not.toContain('journal.lost');
    expect(existsSync(join(home.stateDir, 'broker.sqlite.in-use'))).toBe(false);
  } finally {
    await home.remove();
  }
});

test('a journal that is emptied while it is in use ends the broker at once with 75; the next start sets it aside and serves', async () => {
  const home = new BrokerHome();
  try {
    const broker = await home.start();
    const client = await RawPeer.client(home.socket);
    await client.request('enqueue', { task: 'none', args: {} });
    truncateSync(join(home.stateDir, 'broker.sqlite'));
    expect(await broker.exited).toBe(75);
    expect(await broker.event('broker.broken')).toMatchObject({
      damaged: true,
      reason: expect.stringContaining('was emptied while it was in use'),
    });
    await client.closed;
    const second = await home.start();
    expect(second.lines.map(({ event }) => event)).toContain('journal.set_aside');
    expect(second.lines.map(({ event }) => event)).not.toContain('journal.lost');
    expect(await second.stop()).toBe(0);
  } finally {
    await home.remove();
  }
});

test('a journal that is removed while it is in use is written back before the broker ends with 75: nothing is lost', async () => {
  const home = new BrokerHome();
  try {
    const broker = await home.start();
    const client = await RawPeer.client(home.socket);
    const { job_id } = await client.request('enqueue', { task: 'none', args: { text: 'x'.repeat(5000) } });
    for (const name of readdirSync(home.stateDir).filter((each) => each.startsWith('broker.sqlite')))
      rmSync(join(home.stateDir, name));
    const late = await client.request('enqueue', { task: 'none', args: {} });
    expect(await broker.exited).toBe(75);
    expect(await broker.event('journal.rescued')).toMatchObject({ path: join(home.stateDir, 'broker.sqlite') });
    await client.closed;
    const second = await home.start();
    const again = await RawPeer.client(home.socket);
    expect((await again.request('status', { job_id })).type).toBe('status');
    expect((await again.request('status', { job_id: late['job_id'] })).type).toBe('status');
    await again.close();
    const events = second.lines.map(({ event }) => event);
    for (const event of ['journal.lost', 'journal.set_aside']) expect(events).not.toContain(event);
    expect(await second.stop()).toBe(0);
  } finally {
    await home.remove();
  }
});

test('a journal that is replaced while it is in use is kept beside the new one, and the next start says that it has another', async () => {
  const home = new BrokerHome();
  try {
    const broker = await home.start();
    const client = await RawPeer.client(home.socket);
    const { job_id } = await client.request('enqueue', { task: 'none', args: {} });
    const other = start(join(directory, 'other'));
    accept(other, 1);
    other.mark.remove();
    close(other);
    open = [];
    const file = join(home.stateDir, 'broker.sqlite');
    rmSync(file);
    copyFileSync(join(directory, 'other', 'broker.sqlite'), file);
    expect(await broker.exited).toBe(75);
    const { path } = await broker.event('journal.rescued');
    await client.closed;
    const second = await home.start();
    expect(await second.event('journal.lost')).toMatchObject({ reason: expect.stringContaining('another journal') });
    const rescued = new SQLite(path as string, { readonly: true });
    expect(rescued.prepare('SELECT count(*) FROM jobs WHERE id = ?').pluck().get(job_id)).toBe(1);
    rescued.close();
    expect(await second.stop()).toBe(0);
  } finally {
    await home.remove();
  }
});
