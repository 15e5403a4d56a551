/** Unfinished jobs are found whatever lies before, between and behind them, without a look at the finished ones before the frontier. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Job } from '../src/core/index.js';
import { Maintenance } from '../src/journal/maintenance.js';
import { openJournal } from '../src/journal/opening.js';
import { DamagedJournalError } from '../src/journal/schema.js';
import { finishedJob, recordsOf } from './journal-rows.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'rhf-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

const NOW = 1_767_225_600_000;

function unfinished(seq: number): Job {
  return finishedJob(seq, NOW, { completedAt: null, state: 'available', result: null, resultBytes: 0 });
}

function reopened(): number[] {
  const opened = openJournal(directory, 'normal', 'x');
  const found = opened.state.jobs.map(({ job }) => job.seq);
  opened.journal.close();
  expect(opened.setAside).toBeNull();
  return found;
}

test('of 5,000 jobs in turns of 50 every seventh stays unfinished; half of those end later, some behind the frontier', () => {
  const { journal } = openJournal(directory, 'normal', 'x');
  const open: Job[] = [];
  for (let first = 1; first <= 5000; first += 50) {
    const jobs = Array.from({ length: 50 }, (_, at) => unfinished(first + at));
    journal.commit(recordsOf(jobs));
    for (const job of jobs) job.stored = true;
    const ending = jobs.filter(({ seq }) => seq % 7 !== 0);
    for (const job of ending) Object.assign(job, { state: 'completed', completedAt: NOW, result: '1', resultBytes: 1 });
    journal.commit(recordsOf(ending));
    open.push(...jobs.filter(({ seq }) => seq % 7 === 0));
  }
  const listed = journal.database.prepare('SELECT count(*) FROM open_jobs').pluck().get() as number;
  expect(listed).toBeGreaterThan(500);
  const later = open.filter((_, at) => at % 2 === 0);
  for (const job of later) Object.assign(job, { state: 'cancelled', completedAt: NOW });
  journal.commit(recordsOf(later));
  journal.close();
  const expected = open.filter((_, at) => at % 2 === 1).map(({ seq }) => seq);
  expect(reopened()).toEqual(expected);
  expect(reopened()).toEqual(expected);
});

test('a turn that could not be committed moves nothing: tried again, it is whole', () => {
  const { journal } = openJournal(directory, 'normal', 'x');
  const jobs = Array.from({ length: 3000 }, (_, at) => unfinished(at + 1));
  const twice = { ...recordsOf([...jobs, unfinished(1)]) };
  expect(() => journal.commit(twice)).toThrow(/UNIQUE/);
  expect(journal.load().jobs).toEqual([]);
  journal.commit(recordsOf(jobs));
  for (const job of jobs) Object.assign(job, { stored: true, state: 'discarded', completedAt: NOW });
  journal.commit(recordsOf(jobs.slice(0, 2999)));
  journal.close();
  expect(reopened()).toEqual([3000]);
});

test('jobs made after retention has removed everything are still found', () => {
  const first = openJournal(directory, 'normal', 'x');
  first.journal.commit(recordsOf(Array.from({ length: 3000 }, (_, at) => finishedJob(at + 1, NOW))));
  const maintenance = new Maintenance(first.journal.database, { maxAgeMs: 1e12, maxJobs: 0, maxBytes: 1e12 });
  while (maintenance.slice(NOW, () => performance.now()));
  expect(first.journal.database.prepare('SELECT count(*) FROM jobs').pluck().get()).toBe(0);
  first.journal.close();
  const second = openJournal(directory, 'normal', 'x');
  second.journal.commit(recordsOf([unfinished(second.nextSeq)]));
  second.journal.close();
  expect(reopened()).toEqual([second.nextSeq]);
});

test('a journal that does not say where its unfinished jobs are is damaged, not empty', () => {
  const { journal } = openJournal(directory, 'normal', 'x');
  journal.commit(recordsOf([unfinished(1)]));
  journal.database.exec(`DELETE FROM meta WHERE key = 'frontier'`);
  journal.close();
  const next = openJournal(directory, 'normal', 'y');
  expect(next.setAside).not.toBeNull();
  next.journal.close();
  expect(new DamagedJournalError('x').name).toBe('DamagedJournalError');
});
