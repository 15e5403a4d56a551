/** A journal with a hundred thousand finished jobs costs nothing at the start and nothing per job. */
import { mkdirSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openJournal } from '../src/journal/opening.js';
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

test('opening 100,000 finished jobs takes less than 300 ms, and they are all still there', async () => {
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
  opened.journal.close();
  await home.start();
  const peer = await RawPeer.client(home.socket);
  expect(await peer.request('result', { job_id: finishedJob(54_321, now).id })).toMatchObject({
    type: 'result',
    result: 'r'.repeat(198),
  });
  const stats = (await peer.request('inspect', { what: 'stats' }))['data'] as {
    journal: { jobs: Record<string, number> };
  };
  expect(stats.journal.jobs).toEqual({ completed: 100_000 });
  const page = await peer.request('inspect', { what: 'jobs', limit: 3, state: 'completed' });
  expect((page['data'] as { id: string }[]).map((job) => job.id)).toEqual(
    [100_000, 99_999, 99_998].map((seq) => finishedJob(seq, now).id),
  );
  const next = await peer.request('inspect', { what: 'jobs', limit: 1, cursor: page['next_cursor'] });
  expect((next['data'] as { id: string }[])[0]?.id).toBe(finishedJob(99_997, now).id);
  await peer.close();
});
