/** The journal by itself: what it keeps, forgets, survives. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import SQLite from 'better-sqlite3';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { newSession } from '../src/core/index.js';
import { Journal } from '../src/journal/journal.js';
import { sameJson } from '../src/journal/json-equality.js';
import { Maintenance } from '../src/journal/maintenance.js';
import { openJournal } from '../src/journal/opening.js';
import { damageManyTimes } from './journal-damage.js';
import { finishedJob, recordsOf } from './journal-rows.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'rhj-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

const DAY = 86_400_000;
const NOW = 1_767_225_600_000;

function maintain(
  journal: Journal,
  retention: Partial<{ maxAgeMs: number; maxJobs: number; maxBytes: number }>,
): number {
  const maintenance = new Maintenance(journal.database, {
    maxAgeMs: 7 * DAY,
    maxJobs: 1_000_000,
    maxBytes: 1e12,
    ...retention,
  });
  while (maintenance.slice(NOW, () => performance.now()));
  return journal.database.prepare('SELECT count(*) FROM jobs').pluck().get() as number;
}

test('large texts stand beside the row and come back byte for byte; a tombstone keeps only the id', () => {
  const journal = new Journal(join(directory, 'j'), 'normal');
  const args = `{"big":"${'ü'.repeat(3000)}","n":1.0}`;
  const result = `[${'1180591620717411303424,'.repeat(500)}1e5]`;
  const job = finishedJob(1, NOW, { args, argsBytes: args.length, result, resultBytes: result.length });
  journal.commit(recordsOf([job]));
  const found = journal.findJob(job.id);
  if (found === null || found === 'expired') throw new Error('not found');
  expect([found.args ?? journal.readArgs(found), found.result ?? journal.readResult(found)]).toEqual([args, result]);
  journal.commit({ ...recordsOf([]), tombstones: [job.id] });
  expect(journal.findJob(job.id)).toBe('expired');
  expect(journal.database.prepare('SELECT count(*) FROM payloads').pluck().get()).toBe(0);
  journal.close();
});

test('forgetting: by age, by number, by size, oldest first; never what is unfinished or belongs to an open session', () => {
  const journal = new Journal(join(directory, 'j'), 'normal');
  const jobs = Array.from({ length: 1000 }, (_, n) => finishedJob(n + 1, NOW - (1000 - n) * 60_000));
  const session = newSession('s', 't', '{}', NOW - 30 * DAY);
  const old = finishedJob(2001, NOW - 20 * DAY, { sessionId: 's' });
  const unfinished = finishedJob(2002, NOW - 20 * DAY, { state: 'available', completedAt: null, result: null });
  const ancient = finishedJob(2003, NOW - 20 * DAY);
  journal.commit({ ...recordsOf([...jobs, old, unfinished, ancient]), sessions: [session] });
  expect(maintain(journal, {})).toBe(1002);
  expect(journal.findJob(ancient.id)).toBeNull();
  expect(maintain(journal, { maxJobs: 301 })).toBe(302);
  expect(journal.findJob((jobs[0] as { id: string }).id)).toBeNull();
  expect(journal.findJob((jobs[999] as { id: string }).id)).not.toBeNull();
  maintain(journal, { maxBytes: 65_536 });
  expect(journal.findJob(old.id)).not.toBeNull();
  expect(journal.findJob(unfinished.id)).not.toBeNull();
  session.state = 'closed';
  session.closedAt = NOW - 10 * DAY;
  journal.commit({ ...recordsOf([]), sessions: [session] });
  maintain(journal, {});
  expect([journal.findJob(old.id), journal.findSession('s')]).toEqual([null, null]);
  journal.close();
});

test('space that was freed goes back to the file system', () => {
  const path = join(directory, 'j');
  const journal = new Journal(path, 'normal');
  const big = 'x'.repeat(20_000);
  journal.commit(
    recordsOf(
      Array.from({ length: 1000 }, (_, n) => finishedJob(n + 1, NOW, { result: big, resultBytes: big.length })),
    ),
  );
  new Maintenance(journal.database, { maxAgeMs: DAY, maxJobs: 1, maxBytes: 1 }).truncateWal();
  const before = statSync(path).size;
  maintain(journal, { maxJobs: 0 });
  new Maintenance(journal.database, { maxAgeMs: DAY, maxJobs: 1, maxBytes: 1 }).truncateWal();
  expect(statSync(path).size).toBeLessThan(before / 8);
  journal.close();
});

test('writes wait while another process holds the file, and a reader does not keep the WAL from being reused later', () => {
  const path = join(directory, 'j');
  const journal = new Journal(path, 'normal');
  const reader = new SQLite(path, { readonly: true });
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM jobs').get();
  for (let n = 0; n < 3000; n += 100) {
    journal.commit(
      recordsOf(
        Array.from({ length: 100 }, (_, at) =>
          finishedJob(n + at + 1, NOW, { result: 'x'.repeat(2000), resultBytes: 2000 }),
        ),
      ),
    );
  }
  expect(statSync(`${path}-wal`).size).toBeGreaterThan(4_000_000);
  reader.exec('COMMIT');
  reader.close();
  new Maintenance(journal.database, { maxAgeMs: DAY, maxJobs: 1, maxBytes: 1 }).truncateWal();
  expect(statSync(`${path}-wal`).size).toBe(0);
  journal.close();
});

test('a journal cut at any place opens, or is set aside; one that shows its damage later is set aside at the next start', () => {
  expect(damageManyTimes(directory, 40)).toBeGreaterThan(3);
});

test('what SQLite would take for a new journal is set aside and told: emptied, only a log, something that is no file', () => {
  const damages: Record<string, (path: string) => void> = {
    emptied: (path) => truncateSync(path),
    'only the log': (path) => {
      rmSync(path);
      writeFileSync(`${path}-wal`, 'x'.repeat(5000));
    },
    'a directory': (path) => {
      rmSync(path);
      mkdirSync(path);
    },
    'a directory for a log': (path) => mkdirSync(`${path}-wal`),
  };
  for (const [name, damage] of Object.entries(damages)) {
    const state = join(directory, name);
    mkdirSync(join(state, 'sessions'), { recursive: true });
    openJournal(state, 'normal', 'x').journal.close();
    damage(join(state, 'broker.sqlite'));
    const opened = openJournal(state, 'normal', 'y');
    expect([name, opened.setAside]).toEqual([name, join(state, 'broker.sqlite.damaged-y')]);
    opened.journal.close();
    const again = openJournal(state, 'normal', 'z');
    expect([name, again.setAside, again.generation]).toEqual([name, null, 2]);
    again.journal.close();
  }
});

test('a link in the place of the journal is refused and left untouched', () => {
  symlinkSync(join(directory, 'elsewhere'), join(directory, 'broker.sqlite'));
  expect(() => openJournal(directory, 'normal', 'x')).toThrow('is a link');
  expect(readdirSync(directory)).toEqual(['broker.sqlite']);
});

test('a journal of a newer release is refused and left untouched', () => {
  const { journal } = openJournal(directory, 'normal', 'x');
  journal.database.pragma('user_version = 999');
  journal.close();
  expect(() => openJournal(directory, 'normal', 'y')).toThrow('schema 999');
  expect(readdirSync(directory).filter((name) => name.includes('damaged'))).toEqual([]);
});

test('a journal of every release opens, with everything that was in it', () => {
  const kept = fileURLToPath(new URL('../../fixtures/journals/', import.meta.url));
  const releases = readdirSync(kept).filter((name) => name.endsWith('.sqlite'));
  expect(releases.length).toBeGreaterThan(0);
  for (const release of releases) {
    const state = join(directory, release);
    mkdirSync(state);
    copyFileSync(join(kept, release), join(state, 'broker.sqlite'));
    const opened = openJournal(state, 'full', 'x');
    expect(opened.setAside).toBeNull();
    const expected = JSON.parse(readFileSync(join(kept, release.replace('.sqlite', '.json')), 'utf8')) as {
      unfinished: string[];
      results: Record<string, string>;
      sessions: string[];
      schedules: string[];
      expired: string[];
    };
    expect(opened.state.jobs.map(({ job }) => job.id)).toEqual(expected.unfinished);
    expect(opened.state.sessions.map((session) => session.id)).toEqual(expected.sessions);
    expect(opened.state.schedules.map((schedule) => schedule.id)).toEqual(expected.schedules);
    for (const id of expected.expired) expect(opened.journal.findJob(id)).toBe('expired');
    for (const [id, result] of Object.entries(expected.results)) {
      const job = opened.journal.findJob(id);
      if (job === null || job === 'expired') throw new Error(`${release} lost ${id}`);
      expect(job.result ?? opened.journal.readResult(job)).toBe(result);
    }
    opened.journal.close();
    expect(existsSync(join(state, 'broker.sqlite'))).toBe(true);
  }
});

test('equality of JSON texts: key order, blanks and spelling do not matter, digits and the kind of a number do', () => {
  expect(sameJson('{"a":1,"b":[2, 3]}', '{ "b":[2,3],"a":1}')).toBe(true);
  expect(sameJson('{"a":1}', '{"a":1.0}')).toBe(false);
  expect(sameJson('[1.0,1e20,-0,"\\u00e9"]', '[10e-1,100000000000000000000.0,0,"é"]')).toBe(true);
  expect(sameJson('[0.0]', '[-0.0]')).toBe(false);
  const long = `["${'x'.repeat(300_000)}"]`;
  expect([sameJson(long, long), sameJson(long, ` ${long}`)]).toEqual([true, false]);
  expect(sameJson('{"a":"1"}', '{"a":1}')).toBe(false);
  expect(sameJson('{"a":"n1"}', '{"a":1}')).toBe(false);
  expect(sameJson('{"a\\"1":2}', '{"a\\"1":2}')).toBe(true);
  expect(sameJson('[1,2]', '{"0":1,"1":2}')).toBe(false);
  expect(sameJson('9007199254740993', '9007199254740992')).toBe(false);
  fc.assert(
    fc.property(fc.jsonValue(), (value) => sameJson(JSON.stringify(value), JSON.stringify(value, null, 2)) === true),
  );
});
