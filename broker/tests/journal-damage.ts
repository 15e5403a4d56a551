/** Damages a journal at random places and looks what becomes of it: it opens, or is set aside, and never more than one start is lost. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { isDamage, markDamaged, openJournal } from '../src/journal/opening.js';
import { finishedJob, recordsOf } from './journal-rows.js';

interface File {
  readonly name: string;
  readonly bytes: Buffer;
}

const NOW = 1_767_225_600_000;
const JOBS = Array.from({ length: 400 }, (_, n) =>
  finishedJob(n + 1, NOW, n % 7 === 0 ? { state: 'available', completedAt: null, result: null } : {}),
);

/** Plays `times` kinds of damage; answers how often the journal had to be set aside. @throws when one start was not enough */
export function damageManyTimes(directory: string, times: number): number {
  const { database, wal, closed } = makeJournal(join(directory, 'whole'));
  let setAside = 0;
  let run = 0;
  const attempt = (files: readonly File[]): void => {
    const state = join(directory, `run${run++}`);
    if (survive(state, files)) setAside++;
    rmSync(state, { recursive: true });
  };
  fc.assert(
    fc.property(
      fc.constantFrom('closed', 'database', 'wal', 'garbage'),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (kind, at) => {
        if (kind === 'closed') attempt([cut(closed, at)]);
        else if (kind === 'database') attempt([cut(database, at), wal]);
        else if (kind === 'wal') attempt([database, cut(wal, at)]);
        else attempt([spoil(closed, at)]);
      },
    ),
    { numRuns: times },
  );
  return setAside;
}

function makeJournal(directory: string): { readonly database: File; readonly wal: File; readonly closed: File } {
  mkdirSync(directory);
  const { journal } = openJournal(directory, 'normal', 'x');
  for (let n = 0; n < JOBS.length; n += 40) journal.commit(recordsOf(JOBS.slice(n, n + 40)));
  const read = (name: string): File => ({ name, bytes: readFileSync(join(directory, name)) });
  const database = read('broker.sqlite');
  const wal = read('broker.sqlite-wal');
  journal.close();
  return { database, wal, closed: read('broker.sqlite') };
}

function cut(file: File, at: number): File {
  return { name: file.name, bytes: file.bytes.subarray(0, Math.floor(file.bytes.length * at)) };
}

function spoil(file: File, at: number): File {
  const bytes = Buffer.from(file.bytes);
  const from = Math.floor(bytes.length * at);
  bytes.fill(0xa5, from, Math.min(bytes.length, from + 5000));
  return { name: file.name, bytes };
}

/** Starts on the files as a broker would, until it works; true when the journal was set aside. */
function survive(state: string, files: readonly File[]): boolean {
  mkdirSync(state);
  for (const file of files) writeFileSync(join(state, file.name), file.bytes);
  for (let start = 1; start <= 2; start++) {
    const opened = openJournal(state, 'normal', `${start}`);
    try {
      for (const job of JOBS) opened.journal.findJob(job.id);
      opened.journal.commit(recordsOf([finishedJob(100_000 + start, NOW)]));
      opened.journal.close();
      return opened.setAside !== null;
    } catch (error) {
      if (!isDamage(error)) throw error;
      opened.journal.close();
      markDamaged(join(state, 'broker.sqlite'));
    }
  }
  throw new Error('a second start found damage again');
}
