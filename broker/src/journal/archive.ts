/** What the core may ask of the world: finished work, session directories, processes. Read-only. */
import { statSync } from 'node:fs';
import type { Archive, Job, JournalFacts, RawJson, Session } from '../core/index.js';
import { isProcessAlive } from '../state/processes.js';
import type { SessionDirectories } from '../state/session-directories.js';
import type { Journal } from './journal.js';
import { sameJson } from './json-equality.js';
import { listJobs, listSessions } from './listing.js';
import type { OpenedJournal } from './opening.js';

export class JournalArchive implements Archive {
  readonly #journal: Journal;
  readonly #directories: SessionDirectories;
  readonly #path: string;
  readonly #setAside: string | null;
  readonly #lost: string | null;

  constructor(opened: Pick<OpenedJournal, 'journal' | 'path' | 'setAside' | 'lost'>, directories: SessionDirectories) {
    this.#journal = opened.journal;
    this.#directories = directories;
    this.#path = opened.path;
    this.#setAside = opened.setAside;
    this.#lost = opened.lost?.reason ?? null;
  }

  findJob(id: string): Job | 'expired' | null {
    return this.#journal.findJob(id);
  }

  readArgs(job: Job): RawJson {
    return this.#journal.readArgs(job);
  }

  readResult(job: Job): RawJson | null {
    return this.#journal.readResult(job);
  }

  findSession(id: string): Session | null {
    return this.#journal.findSession(id);
  }

  listJobs(
    state: string | null,
    limit: number,
    cursor: string | null,
  ): { readonly jobs: Job[]; readonly nextCursor: string | null } {
    return listJobs(this.#journal.database, state, limit, cursor);
  }

  listSessions(
    state: string | null,
    limit: number,
    cursor: string | null,
  ): { readonly sessions: Session[]; readonly nextCursor: string | null } {
    return listSessions(this.#journal.database, state, limit, cursor);
  }

  facts(): JournalFacts {
    return {
      durability: this.#journal.durability,
      bytes: sizeOf(this.#path),
      walBytes: sizeOf(`${this.#path}-wal`),
      finished: this.#journal.census.byState(),
      setAside: this.#setAside,
      lost: this.#lost,
    };
  }

  isProcessAlive(pid: number): boolean {
    return isProcessAlive(pid);
  }

  sessionDirectory(sessionId: string): string {
    return this.#directories.pathOf(sessionId);
  }

  readOp(args: RawJson): string | null {
    const value: unknown = JSON.parse(args);
    if (typeof value !== 'object' || value === null) return null;
    const { op } = value as { op?: unknown };
    return typeof op === 'string' ? op : null;
  }

  sameJson(a: RawJson, b: RawJson): boolean {
    return sameJson(a, b);
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
