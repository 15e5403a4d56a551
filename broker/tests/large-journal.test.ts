/** A journal with a hundred thousand finished jobs costs nothing at the start and nothing per job. */
import { mkdirSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openJournal } from '../src/journal/opening.js';
import { BrokerHome } from './broker-process.js';
import { finishedJob, pagesOfJobs, recordsOf } from './journal-rows.js';
import { RawPeer } from './raw-peer.js';

let home: BrokerHome;
beforeEach(() => {
  home = new BrokerHome();
});
afterEach(async () => {
  await home.remove();
});

test('opening 100,000 finished jobs takes less than 300 ms, a job dirties as many pages after them as after none, and they are all still there', async () => {
  mkdirSync(home.stateDir, { recursive: true });
  const made = openJournal(home.stateDir, 'normal', 'x');
  made.journal.database.pragma('synchronous = OFF');
  const now = Date.now();
  for (let n = 0; n < 100_000; n += 10_000) {
    made.journal.commit(recordsOf(Array.from({ length: 10_000 }, (_, at) => finishedJob(n + at + 1, now - 1000))));
  }
  made.journal.close();
  const before = process.cpuUsage();
  const opened = openJournal(home.stateDir, 'full', 'x');
  const used = process.cpuUsage(before);
  // Processor time, not the clock: this machine may be busy with something else.
  expect((used.user + used.system) / 1000).toBeLessThan(300);
  expect([opened.state.jobs.length, opened.nextSeq]).toEqual([0, 100_001]);
  const pages = pagesOfJobs(opened.journal, opened.path, 1_000_000);
  opened.journal.close();
  const empty = openJournal(home.directory, 'normal', 'x');
  // 300 turns each: a deeper index is a page more now and then, never one per job of the history.
  expect(pages).toBeLessThan(1.5 * pagesOfJobs(empty.journal, empty.path, 1_000_000));
  empty.journal.close();
  await home.start();
  const peer = await RawPeer.client(home.socket);
  expect(await peer.request('result', { job_id: finishedJob(54_321, now).id })).toMatchObject({
    type: 'result',
    result: 'r'.repeat(198),
  });
  const stats = (await peer.request('inspect', { what: 'stats' }))['data'] as {
    journal: { jobs: Record<string, number> };
  };
  expect(stats.journal.jobs).toEqual({ completed: 100_100 });
  const page = await peer.request('inspect', { what: 'jobs', limit: 3, state: 'completed' });
  expect(page['data']).toHaveLength(3);
  const next = await peer.request('inspect', { what: 'jobs', limit: 1, cursor: '100001' });
  expect((next['data'] as { id: string }[])[0]?.id).toBe(finishedJob(100_000, now).id);
  await peer.close();
});
