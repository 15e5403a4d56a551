/** Arguments and results that are no longer where the journal says: never replaced by something else, never run. */
import { join } from 'node:path';
import SQLite from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openJournal } from '../src/journal/opening.js';
import { DamagedJournalError } from '../src/journal/schema.js';
import { BrokerHome } from './broker-process.js';
import { finishedJob, recordsOf } from './journal-rows.js';
import { RawPeer } from './raw-peer.js';

let home: BrokerHome;
beforeEach(() => {
  home = new BrokerHome();
});
afterEach(async () => {
  await home.remove();
});

const NOW = 1_767_225_600_000;
const LARGE = `{"text":"${'x'.repeat(5000)}"}`;

/** Does something to the journal from outside. */
function outside<T>(work: (database: SQLite.Database) => T): T {
  const database = new SQLite(join(home.stateDir, 'broker.sqlite'), { timeout: 5000 });
  try {
    return work(database);
  } finally {
    database.close();
  }
}

async function until(holds: () => boolean): Promise<void> {
  for (const end = performance.now() + 10_000; !holds(); ) {
    if (performance.now() > end) throw new Error('it did not come to that');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test('a waiting job whose arguments are missing never runs: the broker ends with 75, and the next start sets the journal aside', async () => {
  const broker = await home.start(['--limit', 'resident_args_bytes=0']);
  const client = await RawPeer.client(home.socket);
  expect((await client.request('enqueue', { task: 't', args: JSON.parse(LARGE) })).type).toBe('enqueued');
  outside((database) => database.prepare('DELETE FROM payloads').run());
  const worker = await RawPeer.connect(home.socket);
  await worker.request('hello', { mode: 'worker', runtime_id: 'w', max_concurrency: 1, extensions: ['reelhost.1'] });
  worker.send({ version: 1, type: 'register_tasks', request_id: 'r', tasks: ['t'] });
  expect(await broker.exited).toBe(75);
  expect(await broker.event('broker.broken')).toMatchObject({ damaged: true });
  await worker.closed;
  expect(worker.inbox.map(({ type }) => type)).not.toContain('execute');

  const second = await home.start();
  await second.event('journal.set_aside');
  const again = await RawPeer.worker(home.socket, ['t']);
  expect((await again.request('heartbeat')).type).toBe('heartbeat_ok');
  expect(again.inbox).toEqual([]);
  for (const peer of [client, worker, again]) await peer.close();
});

test('an unfinished job without its arguments is found when the journal is opened; a finished one does no harm', () => {
  const opened = openJournal(home.directory, 'normal', 'x');
  const unfinished = finishedJob(1, NOW, {
    args: LARGE,
    argsBytes: LARGE.length,
    completedAt: null,
    state: 'available',
    result: null,
  });
  const finished = finishedJob(2, NOW, { args: LARGE, argsBytes: LARGE.length });
  opened.journal.commit(recordsOf([unfinished, finished]));
  opened.journal.database.prepare('DELETE FROM payloads WHERE key = 4').run();
  opened.journal.close();
  const whole = openJournal(home.directory, 'normal', 'y');
  expect(whole.setAside).toBeNull();
  const found = whole.journal.findJob(finished.id);
  if (found === null || found === 'expired') throw new Error('not found');
  expect(whole.journal.readArgs(found)).toBe('null');
  const [waiting] = whole.state.jobs;
  whole.journal.database.prepare('DELETE FROM payloads').run();
  expect(() => whole.journal.readArgs(waiting?.job as never)).toThrow(DamagedJournalError);
  whole.journal.close();
  const fresh = openJournal(home.directory, 'normal', 'z');
  expect([fresh.setAside, fresh.state.jobs]).toEqual([join(home.directory, 'broker.sqlite.damaged-z'), []]);
  fresh.journal.close();
});

test('a kept result that is missing is damage, not null', () => {
  const { journal } = openJournal(home.directory, 'normal', 'x');
  const result = JSON.stringify('r'.repeat(5000));
  journal.commit(recordsOf([finishedJob(1, NOW, { result, resultBytes: result.length })]));
  const found = journal.findJob(finishedJob(1, NOW).id);
  if (found === null || found === 'expired') throw new Error('not found');
  expect(journal.readResult(found)).toBe(result);
  journal.database.prepare('DELETE FROM payloads').run();
  expect(() => journal.readResult(found)).toThrow(DamagedJournalError);
  journal.close();
});

test('a job that retention has just forgotten is still the same job to who enqueues it again', async () => {
  await home.start(['--retain-jobs', '0', '--limit', 'resident_args_bytes=0']);
  const client = await RawPeer.client(home.socket);
  const plain = await RawPeer.client(home.socket, { extensions: [], runtime_id: 'plain' });
  const worker = await RawPeer.worker(home.socket, ['t']);
  const request = { task: 't', args: JSON.parse(LARGE), options: { submission_id: 'a' } };
  const first = await client.request('enqueue', request);
  const { ids } = await worker.execute();
  await worker.request('succeeded', { ...ids, result: 7 });
  await until(() => outside((database) => database.prepare('SELECT count(*) FROM jobs').pluck().get() === 0));
  expect(await client.request('enqueue', request)).toMatchObject({
    job_id: first['job_id'],
    job: { state: 'completed' },
  });
  expect(await plain.request('status', { job_id: first['job_id'] })).toMatchObject({ job: { args: null } });
  expect(await client.request('result', { job_id: first['job_id'] })).toMatchObject({ result: 7 });
  for (const peer of [client, plain, worker]) await peer.close();
});
