/** Pages of the journal for inspection, newest first. A cursor is the key of the last row shown. */
import type { Database } from 'better-sqlite3';
import type { Job, Session } from '../core/index.js';
import { type JobRow, jobOf, type SessionRow, STATE_NUMBER, sessionOf } from './rows.js';
import { SELECT_JOBS, TOMBSTONE } from './schema.js';

export function listJobs(
  database: Database,
  state: string | null,
  limit: number,
  cursor: string | null,
): { readonly jobs: Job[]; readonly nextCursor: string | null } {
  const before = cursor === null || !/^\d{1,15}$/.test(cursor) ? Number.MAX_SAFE_INTEGER : Number(cursor);
  const number = state === null ? null : (STATE_NUMBER[state] ?? -1);
  const rows = database
    .prepare(
      `${SELECT_JOBS} WHERE jobs.seq < ? AND ifnull(outcomes.state, 0) < ${TOMBSTONE} AND (? IS NULL OR ifnull(outcomes.state, jobs.state) = ?)
       ORDER BY jobs.seq DESC LIMIT ?`,
    )
    .all(before, number, number, limit) as JobRow[];
  const last = rows.at(-1);
  return { jobs: rows.map(jobOf), nextCursor: rows.length === limit && last !== undefined ? String(last.seq) : null };
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
