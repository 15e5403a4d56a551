/** What a long history costs: no statement of the broker walks over it. What it costs in pages is in large-journal.test.ts. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import SQLite from 'better-sqlite3';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { newSession } from '../src/core/index.js';
import { JournalArchive } from '../src/journal/archive.js';
import { listJobs } from '../src/journal/listing.js';
import { Maintenance } from '../src/journal/maintenance.js';
import { openJournal } from '../src/journal/opening.js';
import { SessionDirectories } from '../src/state/session-directories.js';
import { finishedJob, recordsOf } from './journal-rows.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'rhq-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

const NOW = 1_767_225_600_000;
const RETENTION = { maxAgeMs: 1e12, maxJobs: 1_000_000, maxBytes: 1e12 };

/** Uses everything the broker does with a journal, and answers every statement that was prepared for it. */
function statements(): { readonly all: string[]; readonly plan: (sql: string) => string[] } {
  const all = new Set<string>();
  const original = SQLite.prototype.prepare;
  const spy = vi.spyOn(SQLite.prototype, 'prepare').mockImplementation(function (this: SQLite.Database, sql: string) {
    all.add(sql.replace(/\s+/g, ' '));
    return original.call(this, sql) as never;
  });
  try {
    const opened = openJournal(directory, 'full', 'x');
    const { journal } = opened;
    const session = newSession('s', 't', '{}', NOW);
    const waiting = finishedJob(2, NOW, { completedAt: null, state: 'available', result: null });
    const inSession = finishedJob(3, NOW, { sessionId: 's' });
    journal.commit({
      ...recordsOf([finishedJob(1, NOW), waiting, inSession]),
      sessions: [session],
      tombstones: [inSession.id],
    });
    const archive = new JournalArchive(opened, new SessionDirectories(directory));
    archive.facts();
    archive.findJob(waiting.id);
    archive.findSession('s');
    archive.listJobs(null, 10, null);
    archive.listJobs('cancelled', 10, '1');
    archive.listSessions(null, 10, null);
    const maintenance = new Maintenance(journal.database, { ...RETENTION, maxJobs: 0 }, journal.census);
    while (maintenance.slice(NOW, () => performance.now()));
    maintenance.truncateWal();
    journal.load();
    journal.close();
  } finally {
    spy.mockRestore();
  }
  const database = new SQLite(join(directory, 'broker.sqlite'), { readonly: true });
  const plan = (sql: string): string[] => {
    const nothing = Array.from({ length: sql.split('?').length - 1 }, () => null);
    const rows = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...nothing) as { detail: string }[];
    return rows.map(({ detail }) => detail);
  };
  return { all: [...all], plan };
}

test('no statement walks over the jobs, their texts or the sessions: all of them go by an index', () => {
  const { all, plan } = statements();
  const read = all.filter((sql) => /^(SELECT|UPDATE|DELETE|INSERT)/.test(sql));
  expect(read.length).toBeGreaterThan(20);
  const walks = read.flatMap((sql) =>
    plan(sql)
      .filter((step) => /^SCAN (jobs|outcomes|payloads|sessions)\b/.test(step) && !/count\(\*\)/.test(sql))
      .map((step) => `${step}: ${sql}`),
  );
  expect(walks).toEqual([]);
});

test('the statements of a job find it by its key; opening looks at unfinished jobs alone', () => {
  const { all, plan } = statements();
  const planOf = (beginning: RegExp): string[] => plan(all.find((sql) => beginning.test(sql)) ?? `no ${beginning}`);
  expect(planOf(/WHERE jobs\.id = \?/)).toEqual([
    'SEARCH jobs USING INDEX sqlite_autoindex_jobs_1 (id=?)',
    'SEARCH outcomes USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN',
  ]);
  expect(planOf(/^SELECT body FROM payloads/)).toEqual(['SEARCH payloads USING INTEGER PRIMARY KEY (rowid=?)']);
  for (const update of all.filter((sql) => sql.startsWith('UPDATE jobs'))) {
    expect(plan(update)).toEqual(['SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)']);
  }
  expect(planOf(/WHERE jobs\.seq IN \(SELECT seq FROM open_jobs\)/)[0]).toBe(
    'SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)',
  );
  expect(planOf(/WHERE jobs\.seq >= \?/)[0]).toBe('SEARCH jobs USING INTEGER PRIMARY KEY (rowid>?)');
  expect(planOf(/^SELECT max\(seq\)/)[0]).toMatch(/^SEARCH jobs/);
});

test('a count of finished jobs is made once and then followed: jobs that end, tombstones, retention', () => {
  const { journal } = openJournal(directory, 'normal', 'x');
  journal.commit(recordsOf(Array.from({ length: 500 }, (_, at) => finishedJob(at + 1, NOW))));
  expect(journal.census.byState()).toEqual({ completed: 500 });
  const counted = vi.spyOn(journal.database, 'prepare');
  const waiting = finishedJob(601, NOW, { completedAt: null, state: 'available', result: null });
  journal.commit(
    recordsOf([finishedJob(602, NOW, { state: 'cancelled' }), finishedJob(603, NOW, { state: 'discarded' }), waiting]),
  );
  journal.commit({ ...recordsOf([]), tombstones: [finishedJob(1, NOW).id, finishedJob(1, NOW).id, 'unknown'] });
  expect(journal.census.byState()).toEqual({ completed: 499, discarded: 1, cancelled: 1, expired: 1 });
  expect(counted).not.toHaveBeenCalled();
  counted.mockRestore();
  const maintenance = new Maintenance(journal.database, { ...RETENTION, maxJobs: 100 }, journal.census);
  while (maintenance.slice(NOW, () => performance.now()));
  const rows = journal.database.prepare('SELECT count(*) FROM outcomes').pluck().get();
  expect([journal.census.total(), rows]).toEqual([100, 100]);
  journal.close();
});

test('jobs that ended in one way are listed latest end first, page by page, also when many ended in one moment', () => {
  const { journal } = openJournal(directory, 'normal', 'x');
  const cancelled = (seq: number, at: number) => finishedJob(seq, at, { state: 'cancelled' });
  journal.commit(
    recordsOf([finishedJob(1, NOW), cancelled(2, NOW + 9), cancelled(3, NOW), cancelled(4, NOW), cancelled(5, NOW)]),
  );
  const pages: number[][] = [];
  for (let cursor: string | null = null; pages.length < 9; ) {
    const page = listJobs(journal.database, 'cancelled', 2, cursor);
    pages.push(page.jobs.map((job) => job.seq));
    cursor = page.nextCursor;
    if (cursor === null) break;
  }
  expect(pages).toEqual([[2, 5], [4, 3], []]);
  expect(listJobs(journal.database, 'discarded', 2, null)).toEqual({ jobs: [], nextCursor: null });
  expect(listJobs(journal.database, null, 9, '4').jobs.map((job) => job.seq)).toEqual([3, 2, 1]);
  journal.close();
});
