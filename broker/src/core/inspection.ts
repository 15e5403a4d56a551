/** `inspect`: what the broker holds, page by page. docs/local-protocol.md, Registry and inspection. */
import type { Inspect } from '@reelhost/protocol';
import { type Core, refuse, reply } from './core.js';
import { isFinal, JOB_STATES } from './job.js';
import { errorText, jobSummary, jobText } from './job-view.js';
import { findJob } from './lookup.js';
import type { Peer } from './peer.js';
import { runtimesText } from './registry.js';
import { scheduleText } from './schedule.js';
import { type SessionState, sessionText } from './session.js';
import { findSession } from './sessions.js';
import { LIMIT_KEYS } from './settings.js';

/** A UTF-16 unit has at most this many bytes in UTF-8. */
const BYTES_PER_UNIT = 3;
/** Room for the rest of the message. */
const ENVELOPE_UNITS = 4096;

const SESSION_STATES: readonly SessionState[] = ['open', 'closing', 'closed', 'lost'];

/** What is wrong with a filter or a cursor: an empty page, or the first page again, would look like an answer. */
function wrongPage({ what, state, cursor }: Inspect): string | undefined {
  if (what !== 'jobs' && what !== 'sessions') return undefined;
  const states: readonly string[] = what === 'jobs' ? JOB_STATES : SESSION_STATES;
  if (state !== undefined && !states.includes(state)) return `state must be one of ${states.join(', ')}`;
  if (what === 'jobs' && cursor !== undefined && !/^\d{1,15}$/.test(cursor))
    return 'cursor must be next_cursor of the page before';
  return undefined;
}

/** `inspect`. */
export function inspect(core: Core, peer: Peer, request: Inspect): void {
  const wrong = wrongPage(request);
  if (wrong !== undefined) return refuse(core, peer, request, 'invalid_inspect', wrong);
  switch (request.what) {
    case 'stats':
      return answer(core, peer, request, statsText(core), null);
    case 'runtimes':
      return answer(core, peer, request, runtimesText(core), null);
    case 'job':
      return inspectJob(core, peer, request);
    case 'jobs': {
      const { state, limit, cursor } = request;
      const page = isLive(state)
        ? liveJobs(core, request)
        : core.archive.listJobs(state ?? null, limit, cursor ?? null);
      return answer(core, peer, request, ...jobsPage(core, page));
    }
    case 'session': {
      const session = findSession(core, request.id ?? '');
      if (session === null)
        return refuse(core, peer, request, 'session_not_found', `there is no session ${request.id}`);
      return answer(core, peer, request, sessionText(session, core.archive.sessionDirectory(session.id)), null);
    }
    case 'sessions': {
      const page = core.archive.listSessions(request.state ?? null, request.limit, request.cursor ?? null);
      const sessions = page.sessions.map((stored) => {
        const session = core.sessions.get(stored.id) ?? stored;
        return sessionText(session, core.archive.sessionDirectory(session.id));
      });
      return answer(core, peer, request, `[${sessions.join(',')}]`, page.nextCursor);
    }
    case 'schedules': {
      const all = [...core.schedules.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
      const from =
        request.cursor === undefined ? 0 : all.findIndex((schedule) => schedule.id > (request.cursor as string));
      const page = from < 0 ? [] : all.slice(from, from + request.limit);
      const last = page.at(-1);
      const more = last !== undefined && from + page.length < all.length ? last.id : null;
      return answer(core, peer, request, `[${page.map(scheduleText).join(',')}]`, more);
    }
  }
}

function isLive(state: string | undefined): boolean {
  return JOB_STATES.some((each) => each === state && !isFinal(each));
}

/** Unfinished jobs are all in memory: nobody has to search a long history for them. Newest first, like the journal's pages. */
function liveJobs(core: Core, request: Inspect): ReturnType<Core['archive']['listJobs']> {
  const before = request.cursor === undefined ? Number.POSITIVE_INFINITY : Number(request.cursor);
  const found = [...core.jobs.values()].filter((job) => job.state === request.state && job.seq < before);
  const jobs = found.sort((a, b) => b.seq - a.seq).slice(0, request.limit);
  const last = jobs.at(-1);
  return { jobs, nextCursor: found.length > jobs.length && last !== undefined ? String(last.seq) : null };
}

/** Jobs up to the size of a frame: what their executors said of failures can be long. A shorter page goes on where it ended. */
function jobsPage(core: Core, page: ReturnType<Core['archive']['listJobs']>): [string, string | null] {
  const texts: string[] = [];
  let room = Math.floor(core.settings.extensionMaxFrameBytes / BYTES_PER_UNIT) - ENVELOPE_UNITS;
  let last = '';
  for (const job of page.jobs) {
    const text = jobSummary(core.jobs.get(job.id) ?? job);
    if (texts.length > 0 && text.length > room) return [`[${texts.join(',')}]`, last];
    room -= text.length;
    texts.push(text);
    last = String(job.seq);
  }
  return [`[${texts.join(',')}]`, page.nextCursor];
}

function answer(core: Core, peer: Peer, request: Inspect, data: string, nextCursor: string | null): void {
  const cursor = nextCursor === null ? 'null' : JSON.stringify(nextCursor);
  reply(
    core,
    peer,
    'inspected',
    request.request_id,
    `,"what":"${request.what}","data":${data},"next_cursor":${cursor}`,
  );
}

function inspectJob(core: Core, peer: Peer, request: Inspect): void {
  const job = findJob(core, request.id ?? '');
  if (job === null) return refuse(core, peer, request, 'not_found', `there is no job ${request.id}`);
  if (job === 'expired')
    return refuse(core, peer, request, 'job_expired', `job ${request.id} ran, but its result is no longer kept`);
  const view = jobText(core, peer, job, true);
  const error = job.error === null ? 'null' : errorText(job.error);
  const more = `,"created_at":${job.createdAt},"interruptions":${job.interruptions},"timeout_ms":${job.timeoutMs},"error":${error}`;
  answer(core, peer, request, `${view.slice(0, -1)}${more}}`, null);
}

/** Unfinished jobs are all in memory, finished ones were counted by the journal. */
function jobsByState(core: Core, finished: Readonly<Record<string, number>>): Record<string, number> {
  const jobs: Record<string, number> = {};
  for (const { state } of core.jobs.values()) jobs[state] = (jobs[state] ?? 0) + 1;
  return { ...jobs, ...finished };
}

function statsText(core: Core): string {
  let inFlight = 0;
  let runtimes = 0;
  for (const peer of core.peers.values()) {
    inFlight += peer.executions.size;
    if (peer.mode === 'worker' || peer.mode === 'embedded') runtimes++;
  }
  const facts = core.archive.facts();
  return JSON.stringify({
    version: core.identity.version,
    generation: core.identity.generation,
    uptime_ms: Math.round(core.now.mono - core.startedAt),
    durability: facts.durability,
    journal: {
      bytes: facts.bytes,
      wal_bytes: facts.walBytes,
      jobs: jobsByState(core, facts.finished),
      set_aside: facts.setAside,
      lost: facts.lost,
      degraded: core.degraded,
    },
    connections: core.peers.size,
    runtimes,
    in_flight: inFlight,
    sessions_open: core.sessions.size,
    counters: core.counters,
    limits: Object.fromEntries([...LIMIT_KEYS].map(([name, key]) => [name, core.settings[key]])),
  });
}
