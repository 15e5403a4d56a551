/** Pages of the journal for inspection, newest first. A cursor is the key of the last row shown. */
import type { Database } from 'better-sqlite3';
import type { Job, Session } from '../core/index.js';
import { type JobRow, jobOf, type SessionRow, STATE_NUMBER, sessionOf } from './rows.js';
import { SELECT_JOBS, TOMBSTONE } from './schema.js';

/** Jobs of a state that is not final are in the core's memory; here are pages of all jobs, or of those that ended in one way. */
export function listJobs(
  database: Database,
  state: string | null,
  limit: number,
  cursor: string | null,
): { readonly jobs: Job[]; readonly nextCursor: string | null } {
  const from = cursor === null || !/^\d{1,15}$/.test(cursor) ? null : Number(cursor);
  const rows = state === null ? allJobs(database, limit, from) : endedJobs(database, state, limit, from);
  const last = rows.at(-1);
  return { jobs: rows.map(jobOf), nextCursor: rows.length === limit && last !== undefined ? String(last.seq) : null };
}

function allJobs(database: Database, limit: number, from: number | null): JobRow[] {
  return database
    .prepare(
      `${SELECT_JOBS} WHERE jobs.seq < ? AND ifnull(outcomes.state, 0) < ${TOMBSTONE} ORDER BY jobs.seq DESC LIMIT ?`,
    )
    .all(from ?? Number.MAX_SAFE_INTEGER, limit) as JobRow[];
}

/** By the time of their end, so that an index alone says which ones: the jobs themselves are only looked up for the page. */
function endedJobs(database: Database, state: string, limit: number, from: number | null): JobRow[] {
  const end =
    from === null
      ? undefined
      : (database.prepare('SELECT completed_at FROM outcomes WHERE seq = ?').get(from) as
          | { completed_at: number }
          | undefined);
  const seqs = database
    .prepare(
      `SELECT seq FROM outcomes WHERE completed_at <= ? AND state = ? AND (completed_at < ? OR seq < ?)
       ORDER BY completed_at DESC, seq DESC LIMIT ?`,
    )
    .pluck();
  const before = end?.completed_at ?? Number.MAX_SAFE_INTEGER;
  const find = database.prepare(`${SELECT_JOBS} WHERE jobs.seq = ?`);
  const found = seqs.all(before, STATE_NUMBER[state] ?? -1, before, from ?? Number.MAX_SAFE_INTEGER, limit) as number[];
  return found.map((seq) => find.get(seq) as JobRow);
}

export function listSessions(
  database: Database,
  state: string | null,
  limit: number,
  cursor: string | null,
): { readonly sessions: Session[]; readonly nextCursor: string | null } {
  const rows = database
    .prepare('SELECT * FROM sessions WHERE id > ? AND (? IS NULL OR state = ?) ORDER BY id LIMIT ?')
    .all(cursor ?? '', state, state, limit) as SessionRow[];
  const last = rows.at(-1);
  return { sessions: rows.map(sessionOf), nextCursor: rows.length === limit && last !== undefined ? last.id : null };
}
