/**
 * The mark beside a journal that is in use (`broker.sqlite.in-use`): which journal, which start, and how far its log had come a moment ago. An orderly end takes it
 * away. So a start that finds it knows that the last end was none, and what must be there: SQLite itself opens a journal whose log was deleted, emptied or cut
 * without a word, although accepted jobs are missing, and would even write the log of another journal into it.
 *
 * Never opened and closed again while SQLite has the journal: its index (`-shm`), because closing a file gives up the locks that the process holds on it.
 */
import { closeSync, openSync, readFileSync, readSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { endianness } from 'node:os';

/** Where the log is: its first salt grows by one whenever it begins anew; frames are what is committed in it. */
interface LogPosition {
  readonly salt: number;
  readonly frames: number;
}

interface Mark extends LogPosition {
  readonly instance: string;
  readonly generation: number;
}

/** What a start found missing. */
export interface LostLog {
  /** For people: what is missing. */
  readonly reason: string;
  /** Where a log is now that does not belong to the journal, or null. */
  readonly kept: string | null;
}

/** Length of the mark: it is written over in place, in one piece. */
const MARK_BYTES = 160;
const HEADER_BYTES = 32;
/** Times that a log can begin anew between two looks at it, amply. */
const MAX_RESTARTS = 1024;

/** The mark of one open journal. */
export class UseMark {
  readonly #path: string;
  readonly #index: number;
  #file: number | null = null;
  #written = '';

  /** Of the journal at this path, which SQLite has opened and read. */
  constructor(path: string) {
    this.#path = path;
    this.#index = openSync(`${path}-shm`, 'r');
  }

  /** What is missing of what the last run left, or null. `found` is what the journal says of itself, before this start changed it. */
  missing(mark: Mark, found: { readonly instance: string; readonly generation: number }): string | null {
    // Nothing that has ever been used, or the same journal as it was before the last run.
    if (found.generation === 0 || (found.instance === mark.instance && found.generation < mark.generation)) {
      return 'the log of the last run is gone, and all that it accepted with it';
    }
    if (found.instance !== mark.instance) return 'another journal is in the place of the one that was in use';
    // An older release, which makes no mark, has used it since.
    if (found.generation > mark.generation) return null;
    const position = this.#position();
    if (mark.frames === 0 || isAfter(position.salt, mark.salt)) return null;
    if (position.salt === mark.salt && position.frames >= mark.frames) return null;
    return 'the log of the last run is missing or cut: what was accepted last is gone, unless another program, say an SQL shell, has opened the journal since';
  }

  /** Says that the journal is in use and how far its log is. Cheap, and nothing at all when the log has not moved. */
  note(instance: string, generation: number): void {
    const text = JSON.stringify({ instance, generation, ...this.#position() } satisfies Mark);
    if (text === this.#written) return;
    this.#file ??= openSync(markPath(this.#path), 'w', 0o600);
    writeSync(this.#file, text.padEnd(MARK_BYTES), 0);
    this.#written = text;
  }

  /** The journal is about to be closed in order. */
  remove(): void {
    rmSync(markPath(this.#path), { force: true });
  }

  /** To be called after the journal was closed. */
  close(): void {
    closeSync(this.#index);
    if (this.#file !== null) closeSync(this.#file);
  }

  /** From the index of the log: https://www.sqlite.org/walformat.html#walidxfmt */
  #position(): LogPosition {
    const header = Buffer.alloc(48);
    readSync(this.#index, header, 0, header.length, 0);
    const frames = endianness() === 'LE' ? header.readUInt32LE(16) : header.readUInt32BE(16);
    return { salt: header.readUInt32BE(32), frames };
  }
}

/** The mark that the last run left, or null. */
export function readMark(path: string): Mark | null {
  try {
    const mark = JSON.parse(readFileSync(markPath(path), 'utf8')) as Partial<Mark> | null;
    return typeof mark?.frames === 'number' ? (mark as Mark) : null;
  } catch {
    return null;
  }
}

/** Takes away a log that does not continue the one of the mark, before SQLite reads it; answers where it is now, or null. */
export function setForeignLogAside(path: string, mark: Mark, stamp: string): string | null {
  const wal = `${path}-wal`;
  const size = statSync(wal, { throwIfNoEntry: false })?.size ?? 0;
  if (size === 0) return null;
  const header = Buffer.alloc(HEADER_BYTES);
  const file = openSync(wal, 'r');
  readSync(file, header, 0, HEADER_BYTES, 0);
  closeSync(file);
  const isLog = header.readUInt32BE(0) >>> 1 === 0x377f0682 >>> 1;
  const salt = header.readUInt32BE(16);
  if (isLog && (salt === mark.salt || isAfter(salt, mark.salt))) return null;
  const kept = `${wal}.foreign-${stamp}`;
  renameSync(wal, kept);
  return kept;
}

function isAfter(salt: number, before: number): boolean {
  const restarts = (salt - before) >>> 0;
  return restarts > 0 && restarts <= MAX_RESTARTS;
}

function markPath(path: string): string {
  return `${path}.in-use`;
}
