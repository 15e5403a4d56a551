/**
 * Opening the journal of a state directory. One that is damaged beyond opening is set aside under a name with the time, and a new one is made: the broker
 * starts, says so once in its log and in its status, and everything the old journal promised is gone. A journal of a newer release is never touched.
 */
import { randomBytes } from 'node:crypto';
import { closeSync, lstatSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import SQLite from 'better-sqlite3';
import type { StoredState } from '../core/index.js';
import { type Durability, Journal } from './journal.js';
import { DamagedJournalError } from './schema.js';
import { type LostLog, readMark, setForeignLogAside, UseMark } from './use-mark.js';

export interface OpenedJournal {
  readonly journal: Journal;
  readonly path: string;
  readonly state: StoredState;
  readonly nextSeq: number;
  /** Random id of this journal. */
  readonly instance: string;
  /** Number of this start of the journal. */
  readonly generation: number;
  /** Where the damaged journal is now, or null. */
  readonly setAside: string | null;
  /** What the last run had accepted and is not there, or null. */
  readonly lost: LostLog | null;
  readonly mark: UseMark;
}

/** A link stands where the journal belongs. It is left untouched. */
export class LinkedJournalError extends Error {
  override readonly name = 'LinkedJournalError';
}

/** The journal and what SQLite keeps beside it, by the ends of their names. */
const FILES = ['', '-wal', '-shm'];

const DAMAGED = new Set([
  'SQLITE_CORRUPT',
  'SQLITE_NOTADB',
  'SQLITE_FORMAT',
  'SQLITE_ERROR',
  'SQLITE_IOERR_SHORT_READ',
  'SQLITE_MISMATCH',
]);

/** Whether an error means that the file is no journal any more. */
export function isDamage(error: unknown): boolean {
  if (error instanceof DamagedJournalError || error instanceof SyntaxError || error instanceof TypeError) return true;
  return (
    error instanceof SQLite.SqliteError &&
    [...DAMAGED].some((code) => error.code === code || error.code.startsWith(`${code}_`))
  );
}

/** Opens, or sets aside and makes anew. `stamp` names the set aside file, e.g. `20260101T120000Z`. */
export function openJournal(stateDirectory: string, durability: Durability, stamp: string): OpenedJournal {
  const path = join(stateDirectory, 'broker.sqlite');
  try {
    if (isMarkedDamaged(path)) throw new DamagedJournalError('the last run found the journal damaged');
    checkFiles(stateDirectory, path);
    return { ...open(path, durability, stamp), setAside: null };
  } catch (error) {
    if (!isDamage(error)) throw error;
    const aside = `${path}.damaged-${stamp}`;
    for (const suffix of FILES) {
      if (statSync(path + suffix, { throwIfNoEntry: false }) !== undefined) renameSync(path + suffix, aside + suffix);
    }
    unmarkDamaged(path);
    return { ...open(path, durability, stamp), setAside: aside, lost: null };
  }
}

/**
 * What SQLite would take without a word, though everything is lost: a journal that was emptied, of which only the log is left, or in whose place something
 * else stands. A link is refused: whoever made it wants the journal elsewhere, and that is not ours to rename.
 */
function checkFiles(stateDirectory: string, path: string): void {
  const [main, wal] = FILES.map((suffix) => {
    const stat = lstatSync(path + suffix, { throwIfNoEntry: false });
    if (stat?.isSymbolicLink() === true)
      throw new LinkedJournalError(`${path + suffix} is a link; name the state directory in which the journal is`);
    if (stat?.isFile() === false) throw new DamagedJournalError(`${path + suffix} is not a file`);
    return stat;
  });
  const wasInUse =
    (wal?.size ?? 0) > 0 ||
    (main !== undefined && lstatSync(join(stateDirectory, 'sessions'), { throwIfNoEntry: false }) !== undefined);
  if ((main?.size ?? 0) === 0 && wasInUse) throw new DamagedJournalError('the journal is empty');
}

/** Remembers for the next start that the journal was found damaged while it was in use. */
export function markDamaged(path: string): void {
  closeSync(openSync(`${path}.damaged`, 'w', 0o600));
}

function isMarkedDamaged(path: string): boolean {
  return statSync(`${path}.damaged`, { throwIfNoEntry: false }) !== undefined;
}

function unmarkDamaged(path: string): void {
  rmSync(`${path}.damaged`, { force: true });
}

function open(path: string, durability: Durability, stamp: string): Omit<OpenedJournal, 'setAside'> {
  closeSync(openSync(path, 'a', 0o600));
  const left = readMark(path);
  const kept = left === null ? null : setForeignLogAside(path, left, stamp);
  let journal: Journal | undefined;
  let mark: UseMark | undefined;
  try {
    journal = new Journal(path, durability);
    mark = new UseMark(path);
    journal.checkSize(path);
    const state = journal.load();
    const instance = journal.meta('instance', () => randomBytes(6).toString('hex'));
    const found = Number(journal.meta('generation', () => '0'));
    const reason = left === null ? null : mark.missing(left, { instance, generation: found });
    const lost = reason === null ? null : { reason, kept };
    const generation = found + 1;
    journal.setMeta('generation', String(generation));
    return { journal, path, state, nextSeq: journal.nextSeq(), instance, generation, lost, mark };
  } catch (error) {
    journal?.close();
    mark?.close();
    // Not to be taken for one that was emptied.
    if (statSync(path).size === 0) rmSync(path);
    throw error;
  }
}
