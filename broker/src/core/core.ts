/**
 * The state of a broker and the few moves every part of the core makes on it: recording, replying, logging.
 * Nothing here decides; the deciding parts stand in the files named after what they decide.
 */
import { type ErrorCode, quote } from '@reelhost/protocol';
import { Deadlines } from './deadlines.js';
import type { Job } from './job.js';
import type { ConnectionId, Execution, Peer } from './peer.js';
import { ReadyLanes } from './ready-lanes.js';
import { RecentJobs } from './recent-jobs.js';
import type { Schedule } from './schedule.js';
import type { Session } from './session.js';
import { type ReadingContext, readingContexts, type Settings } from './settings.js';
import { type Archive, type DueItem, type Effect, type Entropy, type Moment, noRecords, type Records } from './turn.js';

/** Who this broker is, for `hello_ok` and for execution ids. */
export interface Identity {
  readonly version: string;
  /** Random id of the journal. */
  readonly instance: string;
  /** Number of this start of the journal. */
  readonly generation: number;
}

/** Why new work is refused, e.g. a full disk. */
export interface Degraded {
  readonly code: 'disk_full' | 'journal_error';
  readonly message: string;
  readonly since: number;
}

/** What has happened since this process began, as `inspect` `stats` shows it. */
export interface Counters {
  enqueued: number;
  repeated: number;
  conflicts: number;
  executed: number;
  completed: number;
  discarded: number;
  cancelled: number;
  retried: number;
  interrupted: number;
  timeouts: number;
  refusals: number;
  late: number;
}

/** Everything a broker knows, and what the turn in progress has decided so far. */
export interface Core {
  readonly settings: Settings;
  /** How connections without and with the extension are read. */
  readonly contexts: { readonly plain: ReadingContext; readonly extended: ReadingContext };
  readonly identity: Identity;
  readonly archive: Archive;
  readonly entropy: Entropy;
  /** The moment of the input being handled. */
  now: Moment;
  readonly peers: Map<ConnectionId, Peer>;
  /** Unfinished jobs. */
  readonly jobs: Map<string, Job>;
  readonly recent: RecentJobs;
  readonly sessions: Map<string, Session>;
  readonly schedules: Map<string, Schedule>;
  readonly lanes: ReadyLanes;
  /** Peers that registered a task. */
  readonly servers: Map<string, Set<Peer>>;
  /** Executing jobs per queue, sessions' jobs apart. */
  readonly executing: Map<string, number>;
  /** Every execution that holds a slot or waits for its executor to come back. */
  readonly executions: Map<string, Execution>;
  /** Ids of lost sessions that nobody has closed yet, oldest first. */
  readonly lostSessions: Set<string>;
  /** Sessions that were closed over an execution that had not ended yet, by its id: its end is still told to who closes them again. */
  readonly outlived: Map<string, Session>;
  /** Ids of cancelled schedules that are still remembered, oldest first. */
  readonly endedSchedules: Set<string>;
  /** Schedules whose firing waits for the end of a job: job id → schedule id. */
  readonly scheduleWaits: Map<string, string>;
  readonly watchers: Map<string, Set<Peer>>;
  readonly registryWatchers: Set<Peer>;
  registryDirty: boolean;
  /** Monotonic ms of the last push to registry watchers. */
  registrySentAt: number;
  /** Monotonic ms. */
  readonly durations: Deadlines<DueItem>;
  /** UTC ms. */
  readonly appointments: Deadlines<DueItem>;
  records: Records;
  effects: Effect[];
  dispatchWanted: boolean;
  nextSeq: number;
  nextExecution: number;
  nextPush: number;
  residentArgsBytes: number;
  /** Characters sent to all peers since the last turn ended. */
  answered: number;
  /** UTF-16 units of all secrets that are held for unfinished jobs. */
  secretsHeld: number;
  /** Monotonic ms of the start. */
  readonly startedAt: number;
  draining: boolean;
  degraded: Degraded | null;
  readonly counters: Counters;
}

/** A broker that knows nothing yet. */
export function newCore(
  settings: Settings,
  identity: Identity,
  archive: Archive,
  entropy: Entropy,
  now: Moment,
  nextSeq: number,
): Core {
  return {
    settings,
    contexts: readingContexts(settings),
    identity,
    archive,
    entropy,
    now,
    peers: new Map(),
    jobs: new Map(),
    recent: new RecentJobs(settings.recentJobs, settings.recentBytes),
    sessions: new Map(),
    schedules: new Map(),
    lanes: new ReadyLanes(),
    servers: new Map(),
    executing: new Map(),
    executions: new Map(),
    lostSessions: new Set(),
    outlived: new Map(),
    endedSchedules: new Set(),
    scheduleWaits: new Map(),
    watchers: new Map(),
    registryWatchers: new Set(),
    registryDirty: false,
    registrySentAt: Number.NEGATIVE_INFINITY,
    durations: new Deadlines(),
    appointments: new Deadlines(),
    records: noRecords(),
    effects: [],
    dispatchWanted: false,
    nextSeq,
    nextExecution: 0,
    nextPush: 0,
    residentArgsBytes: 0,
    answered: 0,
    secretsHeld: 0,
    startedAt: now.mono,
    draining: false,
    degraded: null,
    counters: {
      enqueued: 0,
      repeated: 0,
      conflicts: 0,
      executed: 0,
      completed: 0,
      discarded: 0,
      cancelled: 0,
      retried: 0,
      interrupted: 0,
      timeouts: 0,
      refusals: 0,
      late: 0,
    },
  };
}

/** Puts a job into the records of this turn, once. */
export function recordJob(core: Core, job: Job): void {
  if (job.touched) return;
  job.touched = true;
  core.records.jobs.push(job);
}

/** Puts a session into the records of this turn, once. */
export function recordSession(core: Core, session: Session): void {
  if (session.touched) return;
  session.touched = true;
  core.records.sessions.push(session);
}

/** Puts a schedule into the records of this turn, once. */
export function recordSchedule(core: Core, schedule: Schedule): void {
  if (schedule.touched) return;
  schedule.touched = true;
  core.records.schedules.push(schedule);
}

/** Answers a request; `fields` is the inside of an object, empty or beginning with a comma. */
export function reply(core: Core, peer: Peer, type: string, requestId: string, fields: string): void {
  if (peer.closed) return;
  peer.outstanding.delete(requestId);
  send(core, peer, messageText(type, requestId, fields));
}

function send(core: Core, peer: Peer, text: string): void {
  peer.answered += text.length;
  core.answered += text.length;
  core.effects.push({ kind: 'send', to: peer.id, text });
}

/** Sends something nobody asked for, with a request id of its own. */
export function push(core: Core, peer: Peer, type: string, fields: string): void {
  if (peer.closed) return;
  core.effects.push({
    kind: 'send',
    to: peer.id,
    text: messageText(type, `b${(++core.nextPush).toString(36)}`, fields),
  });
}

/** A whole message as JSON text; `fields` as for {@link reply}. */
export function messageText(type: string, requestId: string, fields: string): string {
  return `{"version":1,"type":"${type}","request_id":${quote(requestId)}${fields}}`;
}

/** Refuses a request; the connection stays open. `extra` is more JSON for the error object, beginning with a comma. */
export function refuse(
  core: Core,
  peer: Peer,
  request: { readonly request_id: string },
  code: ErrorCode,
  text: string,
  extra = '',
): void {
  if (peer.closed) return;
  peer.outstanding.delete(request.request_id);
  const error = `,"error":{"code":"${code}","message":${JSON.stringify(text)}${extra}}`;
  send(core, peer, messageText('error', request.request_id, error));
}

/** Refuses new work because the disk or the journal is in trouble. */
export function refuseDegraded(
  core: Core,
  peer: Peer,
  request: { readonly request_id: string },
  degraded: Degraded,
): void {
  const code = degraded.code === 'disk_full' ? 'disk_full' : 'unavailable';
  refuse(core, peer, request, code, degraded.message, `,"reason":"${degraded.code}"`);
}

/** A line for the log, written with this turn's effects. */
export function log(
  core: Core,
  level: 'debug' | 'info' | 'warn' | 'error',
  event: string,
  fields: Readonly<Record<string, unknown>>,
): void {
  core.effects.push({ kind: 'log', level, event, fields });
}
