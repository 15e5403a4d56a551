/**
 * Every limit and duration of the broker: one name, one default, one range. The command line, the documentation and the tests are made from this table; a
 * limit that is not in it does not exist. Tay's defaults where Tay has one (local executor protocol v1), ours elsewhere.
 *
 * The name an operator uses is the key in lower case with underscores: `maxFrameBytes` is `max_frame_bytes`.
 */
import {
  JSON_LIMITS,
  JSON_LIMITS_EXTENSION,
  type JsonLimits,
  MAX_RESUME_ENTRIES,
  type RequestContext,
} from '@reelhost/protocol';

/** What a limit counts. */
export type LimitUnit = 'bytes' | 'ms' | 'hours' | 'MiB' | 'count';

/** One row of the table. */
export interface LimitRow {
  readonly value: number;
  readonly min: number;
  readonly max: number;
  readonly unit: LimitUnit;
  /** What a peer hears, or what happens, when it is reached. */
  readonly over: string;
  readonly meaning: string;
}

function row(unit: LimitUnit, value: number, min: number, max: number, over: string, meaning: string): LimitRow {
  return { unit, value, min, max, over, meaning };
}

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const GIB = 1_073_741_824;

/** The table. */
export const LIMITS = {
  maxConnections: row('count', 128, 1, 4_096, '`too_many_connections`', 'connections at once'),
  helloTimeoutMs: row('ms', 10_000, 50, HOUR_MS, '`hello_timeout`', 'from connecting to a good `hello`'),
  frameTimeoutMs: row('ms', 30_000, 50, HOUR_MS, '`frame_timeout`', 'from the first byte of a frame to its last'),
  replyTimeoutMs: row(
    'ms',
    25_000,
    50,
    HOUR_MS,
    '`unknown_outcome`, `request_timeout`',
    'a reply while the disk does not answer',
  ),
  maxFrameBytes: row('bytes', 1_048_576, 8_192, 16_777_216, '`frame_too_large`', 'payload of a frame, Tay v1'),
  extensionMaxFrameBytes: row('bytes', 8_388_608, 65_536, 16_777_216, '`frame_too_large`', 'the same with reelhost.1'),
  maxDepth: row('count', 33, 8, 33, '`value_limit`', 'levels in a frame; a leaf counts as a level'),
  maxValues: row('count', 10_000, 64, 1_000_000, '`value_limit`', 'values in a frame, Tay v1'),
  maxKeyBytes: row('bytes', 4_096, 64, 4_096, '`value_limit`', 'one object key'),
  maxIdBytes: row('bytes', 128, 64, 128, '`invalid_…`', 'request, runtime, submission and declaration ids'),
  maxNameBytes: row('bytes', 255, 16, 255, '`invalid_…`', 'task keys and queue names'),
  maxTasksPerMessage: row('count', 256, 1, 4_096, '`invalid_tasks`', 'task keys in one message'),
  maxTasksPerPeer: row('count', 4_096, 1, 1_000_000, '`invalid_tasks`', 'task keys of one connection'),
  maxConcurrency: row('count', 65_535, 1, 65_535, '`invalid_hello`', 'what an executor may declare'),
  maxOutstandingRequests: row('count', 64, 1, 4_096, '`too_many_requests`', 'requests of a connection without reply'),
  maxUnreadBytes: row('bytes', 33_554_432, 1_048_576, GIB, 'the connection is cut', 'answers its peer does not read'),
  maxUnreadTotalBytes: row(
    'bytes',
    134_217_728,
    33_554_432,
    16 * GIB,
    '`buffer_limit`',
    'unfinished frames and unread answers of all connections',
  ),
  maxArgsBytes: row('bytes', 262_144, 2, 16_777_216, '`capacity`', 'arguments of a job, Tay v1'),
  extensionMaxArgsBytes: row('bytes', 4_259_840, 2, 16_777_216, '`capacity`', 'the same with reelhost.1'),
  maxResultBytes: row('bytes', 65_536, 4, 16_777_216, 'the job ends as `result_too_large`', 'a result, Tay v1'),
  extensionMaxResultBytes: row('bytes', 4_259_840, 4, 16_777_216, 'the same', 'a result with reelhost.1'),
  maxErrorBytes: row('bytes', 8_192, 256, 1_048_576, 'the job ends as `error_too_large`', 'an error object, Tay v1'),
  extensionMaxErrorBytes: row('bytes', 65_536, 256, 1_048_576, 'the same', 'an error object with reelhost.1'),
  defaultTimeoutMs: row(
    'ms',
    30_000,
    1,
    7 * DAY_MS,
    'the job ends as `timeout`',
    'time limit of a job that names none',
  ),
  maxTimeoutMs: row('ms', DAY_MS, 1, 7 * DAY_MS, '`invalid_enqueue`', 'time limit a job may name'),
  timeoutGraceMs: row('ms', 10_000, 0, HOUR_MS, 'the job ends as `timeout`', 'after it: until an executor must report'),
  defaultRetries: row('count', 0, 0, 65_534, '', 'retries of a job that names none'),
  maxRetries: row('count', 65_534, 0, 65_534, '`invalid_enqueue`', 'retries a job may name'),
  maxInterruptions: row('count', 3, 1, 1_000, '`interrupted_too_often`', 'times a job may be cut off'),
  queueConcurrency: row('count', 10, 1, 65_535, 'jobs wait', 'jobs of one queue that run at once'),
  maxLiveJobs: row('count', 200_000, 1, 10_000_000, '`capacity`', 'unfinished jobs'),
  resumeWindowMs: row('ms', 15_000, 0, DAY_MS, '`executor_lost`', 'how long a lost executor may take to come back'),
  secretsWindowMs: row('ms', 60_000, 0, DAY_MS, '`secrets_lost`', 'how long a job waits for secrets lost by a restart'),
  maxSecretsHeld: row('bytes', 268_435_456, 0, 16 * GIB, '`capacity`', 'secrets of all unfinished jobs, in memory'),
  sessionGraceMs: row('ms', 8_000, 0, HOUR_MS, '', '`grace_ms` of a `close_session` that names none'),
  maxSessionGraceMs: row('ms', 20_000, 0, HOUR_MS, '`invalid_session`', 'the longest `grace_ms`'),
  maxCancelWaitMs: row('ms', 20_000, 0, HOUR_MS, '`invalid_request`', 'the longest `wait_ms` of a `cancel`'),
  maxSessions: row('count', 4_096, 1, 1_000_000, '`capacity`', 'sessions that are not closed'),
  sessionResults: row('count', 256, 1, 100_000, '`job_expired`', 'results kept per session'),
  lostSessionMs: row('ms', DAY_MS, 0, 365 * DAY_MS, '`session_closed`', 'how long a lost session waits to be closed'),
  maxLostSessions: row('count', 256, 0, 1_000_000, '`session_closed`', 'lost sessions; the oldest are closed'),
  maxSchedules: row('count', 10_000, 0, 1_000_000, '`capacity`', 'schedules'),
  endedSchedules: row('count', 1_000, 0, 1_000_000, '`schedule_not_found`', 'cancelled schedules that are remembered'),
  progressIntervalMs: row('ms', 100, 10, HOUR_MS, 'the latest is sent', 'between two `job_progress` of a job'),
  registryIntervalMs: row('ms', 250, 10, HOUR_MS, 'the latest is sent', 'between two `registry_changed`'),
  recentJobs: row('count', 256, 0, 1_000_000, 'read from disk', 'finished jobs in memory'),
  recentBytes: row('bytes', 33_554_432, 0, 16 * GIB, 'read from disk', 'their arguments and results in memory'),
  residentArgsBytes: row('bytes', 67_108_864, 0, 16 * GIB, 'read from disk', 'arguments of waiting jobs in memory'),
  retainHours: row('hours', 168, 1, 87_600, '`not_found`', 'age at which a finished job is forgotten'),
  retainJobs: row('count', 200_000, 0, 100_000_000, '`not_found`', 'finished jobs that are kept'),
  retainMib: row(
    'MiB',
    1_024,
    1,
    1_048_576,
    '`not_found`',
    'size of the journal above which the oldest finished jobs go',
  ),
  maxWalBytes: row(
    'bytes',
    268_435_456,
    33_554_432,
    64 * GIB,
    '`unavailable`',
    'WAL that another process keeps from shrinking',
  ),
  spaceReserveBytes: row(
    'bytes',
    8_388_608,
    1_048_576,
    16 * GIB,
    '`disk_full`',
    'space kept for the moment the disk is full',
  ),
} as const satisfies Readonly<Record<string, LimitRow>>;

/** Key of a limit. */
export type LimitKey = keyof typeof LIMITS;

/** All limits in force: times in ms, sizes in bytes, unless the name says otherwise. */
export type Settings = { readonly [Key in LimitKey]: number } & {
  /** Overrides of `queueConcurrency` by queue name. */
  readonly queues: Readonly<Record<string, number>>;
};

const KEYS = Object.keys(LIMITS) as LimitKey[];

/** The name of a limit on the command line and in documents. */
export function limitName(key: LimitKey): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** All limits by name. */
export const LIMIT_KEYS: ReadonlyMap<string, LimitKey> = new Map(KEYS.map((key) => [limitName(key), key]));

function valuesOf(choose: (key: LimitKey) => number): { readonly [Key in LimitKey]: number } {
  return Object.fromEntries(KEYS.map((key) => [key, choose(key)])) as { readonly [Key in LimitKey]: number };
}

/** The defaults. */
export const DEFAULT_SETTINGS: Settings = { ...valuesOf((key) => LIMITS[key].value), queues: {} };

/** Room for everything beside arguments, a result or an error in a frame. */
const ENVELOPE_BYTES = 4_096;

/** Limits that must fit into another one, with the room that must be left. */
const INSIDE: readonly (readonly [LimitKey, LimitKey, number])[] = [
  ['maxFrameBytes', 'extensionMaxFrameBytes', 0],
  ['extensionMaxFrameBytes', 'maxUnreadBytes', 0],
  ['maxUnreadBytes', 'maxUnreadTotalBytes', 0],
  ['maxArgsBytes', 'maxFrameBytes', ENVELOPE_BYTES],
  ['maxResultBytes', 'maxFrameBytes', ENVELOPE_BYTES],
  ['maxErrorBytes', 'maxFrameBytes', ENVELOPE_BYTES],
  ['extensionMaxArgsBytes', 'extensionMaxFrameBytes', ENVELOPE_BYTES],
  ['extensionMaxResultBytes', 'extensionMaxFrameBytes', ENVELOPE_BYTES],
  ['extensionMaxErrorBytes', 'extensionMaxFrameBytes', ENVELOPE_BYTES],
  ['defaultTimeoutMs', 'maxTimeoutMs', 0],
  ['defaultRetries', 'maxRetries', 0],
  ['sessionGraceMs', 'maxSessionGraceMs', 0],
];

/**
 * Settings out of the limits somebody named. A limit nobody named follows the ones it must fit into; answers a sentence when two named ones
 * contradict each other. Each value must lie in its range already.
 */
export function settingsOf(
  named: Readonly<Partial<Record<LimitKey, number>>>,
  queues: Readonly<Record<string, number>> = {},
): Settings | string {
  const values: Record<LimitKey, number> = valuesOf((key) => named[key] ?? LIMITS[key].value);
  for (const [inner, outer, room] of INSIDE) {
    if (values[inner] + room <= values[outer]) continue;
    if (named[inner] !== undefined && named[outer] !== undefined) {
      const beside = room === 0 ? '' : ` and ${room} bytes of envelope`;
      return `${limitName(inner)} = ${values[inner]}${beside} must fit into ${limitName(outer)} = ${values[outer]}`;
    }
    if (named[inner] === undefined) values[inner] = values[outer] - room;
    else values[outer] = values[inner] + room;
  }
  for (const key of KEYS) {
    const { min, max } = LIMITS[key];
    if (values[key] < min || values[key] > max) {
      return `${limitName(key)} would have to be ${values[key]}; it lies in ${min}..${max}`;
    }
  }
  return { ...values, queues };
}

/** Values and bytes that an entry of `hello.resume` needs at most with ids made by a broker. */
const RESUME_ENTRY_VALUES = 5;
const RESUME_ENTRY_BYTES = 256;
const HELLO_VALUES = 32;

/** Executions that an executor can name in one `hello`, which is a plain frame: it is never given more, so that it can resume all of them. */
export function resumableExecutions({ maxValues, maxFrameBytes }: Settings): number {
  const byValues = Math.floor((maxValues - HELLO_VALUES) / RESUME_ENTRY_VALUES);
  const byBytes = Math.floor((maxFrameBytes - ENVELOPE_BYTES) / RESUME_ENTRY_BYTES);
  return Math.max(1, Math.min(MAX_RESUME_ENTRIES, byValues, byBytes));
}

/** How the frames and requests of a connection are read. */
export interface ReadingContext extends RequestContext {
  readonly json: JsonLimits;
}

/** The same as {@link Settings}, for the reader of a connection without and with the extension. */
export function readingContexts(settings: Settings): {
  readonly plain: ReadingContext;
  readonly extended: ReadingContext;
} {
  const { maxDepth, maxValues, maxKeyBytes } = settings;
  const { extensionMaxArgsBytes } = settings;
  return {
    plain: { extension: false, limits: settings, json: { ...JSON_LIMITS, maxDepth, maxValues, maxKeyBytes } },
    extended: {
      extension: true,
      limits: { ...settings, maxArgsBytes: extensionMaxArgsBytes },
      json: { ...JSON_LIMITS_EXTENSION, maxDepth, maxKeyBytes },
    },
  };
}
