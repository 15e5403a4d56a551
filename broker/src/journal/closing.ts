/**
 * Closing the journal. One whose file was removed or exchanged while it was in use is still whole in the hands of this process, and gone when it is closed: it is
 * written anew before, to its own place when nothing else stands there, or beside it.
 */
import { closeSync, lstatSync, openSync, renameSync, rmSync } from 'node:fs';
import type { OpenedJournal } from './opening.js';

/** Closes it; answers where a journal was saved whose file is not `inPlace` any more, or null. `stamp` names a file beside the journal. */
export function closeJournal(opened: OpenedJournal, inPlace: boolean, stamp: string): string | null {
  const { journal, mark, path } = opened;
  const draft = `${path}.rescued-${stamp}`;
  const saved = !inPlace && save(opened, draft);
  if (inPlace) mark.remove();
  journal.close();
  mark.close();
  // SQLite leaves the log of a file that is not in its place, and would read it into whatever stands there next.
  if (!inPlace) takeLogAway(path, saved, stamp);
  if (!saved) return null;
  if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return draft;
  renameSync(draft, path);
  mark.remove();
  return path;
}

function takeLogAway(path: string, saved: boolean, stamp: string): void {
  const wal = `${path}-wal`;
  if (saved) rmSync(wal, { force: true });
  else if (lstatSync(wal, { throwIfNoEntry: false }) !== undefined) renameSync(wal, `${wal}.foreign-${stamp}`);
  rmSync(`${path}-shm`, { force: true });
}

function save({ journal }: OpenedJournal, draft: string): boolean {
  try {
    closeSync(openSync(draft, 'wx', 0o600));
    journal.database.prepare('VACUUM INTO ?').run(draft);
    return true;
  } catch {
    // E.g. the folder is gone as well, or there is no space.
    rmSync(draft, { force: true });
    return false;
  }
}
