/**
 * Every limit of the local protocol, by name. Sizes are bytes of UTF-8, durations milliseconds.
 * These are the defaults both sides start from; what a broker may set otherwise is in {@link RequestLimits}, the rest is part of the language.
 */

/** Limits of the values inside one frame. `Infinity` means that only the frame's size bounds it. */
export interface JsonLimits {
  /** Levels of nesting; the envelope is level 1 and a leaf counts as a level. */
  readonly maxDepth: number;
  /** Values in the whole frame: containers and leaves, keys not counted. */
  readonly maxValues: number;
  /** Bytes of one object key. */
  readonly maxKeyBytes: number;
  /** Digits of one integer literal; more cannot be read by every peer. */
  readonly maxIntegerDigits: number;
}

/** A frame's payload on a connection that asked for no extension. */
export const MAX_FRAME_BYTES = 1_048_576;
/** A frame's payload on a `reelhost.1` connection. */
export const MAX_FRAME_BYTES_EXTENSION = 8_388_608;
/** Unparsed bytes a connection may hold: twice a frame and two headers. */
export function maxBufferedBytes(maxFrameBytes: number): number {
  return 2 * maxFrameBytes + 8;
}

/** `succeeded.result` as JSON text on a Tay v1 connection. */
export const MAX_RESULT_BYTES = 65_536;
/** `failed.error` as JSON text on a Tay v1 connection. */
export const MAX_ERROR_BYTES = 8_192;
/** `succeeded.result` as JSON text on a `reelhost.1` connection: 4 MiB and an envelope. */
export const MAX_RESULT_BYTES_EXTENSION = 4_194_304 + 65_536;
/** `failed.error` as JSON text on a `reelhost.1` connection. */
export const MAX_ERROR_BYTES_EXTENSION = 65_536;
/** `failed.error.details` as JSON text. */
export const MAX_ERROR_DETAILS_BYTES = 16_384;
/** `failed.error.type`. */
export const MAX_ERROR_TYPE_BYTES = 128;
/** `args` of one job as JSON text on a Tay v1 connection. */
export const MAX_ARGS_BYTES = 262_144;

/** `args` of one job as JSON text on a `reelhost.1` connection: 4 MiB and an envelope. */
export const MAX_ARGS_BYTES_EXTENSION = 4_194_304 + 65_536;

/** request, runtime, submission, declaration, reservation and execution ids. */
export const MAX_ID_BYTES = 128;
/** The `type` of a message. */
export const MAX_TYPE_BYTES = 64;
/** Task keys and queue names. */
export const MAX_KEY_BYTES = 255;
/** Task keys in one `register_tasks` or `unregister_tasks`. */
export const MAX_TASKS_PER_MESSAGE = 256;
/** What an executor may declare in `hello`. */
export const MAX_CONCURRENCY = 65_535;
/** Requests of one connection that wait for their reply. */
export const MAX_OUTSTANDING_REQUESTS = 64;
/** Connections at one socket. */
export const MAX_CONNECTIONS = 128;
/** Bytes of a Unix socket path that every supported system accepts. */
export const MAX_SOCKET_PATH_BYTES = 100;

/** `timeout_ms` when a job asks for none. */
export const DEFAULT_JOB_TIMEOUT_MS = 30_000;
/** The largest `timeout_ms`: a day. */
export const MAX_JOB_TIMEOUT_MS = 86_400_000;
/** The largest `retries`. */
export const MAX_RETRIES = 65_534;
/** The queue of a job that names none. */
export const DEFAULT_QUEUE = 'default';
/** A cron expression. */
export const MAX_CRON_BYTES = 256;

/** `hello.software`. */
export const MAX_SOFTWARE_BYTES = 128;
/** Entries of `hello.resume`. */
export const MAX_RESUME_ENTRIES = 1_024;
/** `declarations.<task>.attributes` as JSON text. */
export const MAX_ATTRIBUTES_BYTES = 16_384;
/** Entries of `declarations.<task>.idempotent_ops`. */
export const MAX_IDEMPOTENT_OPS = 256;
/** `open_session.labels` as JSON text. */
export const MAX_LABELS_BYTES = 4_096;
/** Job ids in one `watch`. */
export const MAX_WATCHED_JOBS = 1_024;
/** Entries of `enqueue.secrets`. */
export const MAX_SECRETS = 1_024;
/** All of `enqueue.secrets` together: names and values. */
export const MAX_SECRETS_BYTES = 4_194_304;
/** `progress.progress` as JSON text. */
export const MAX_PROGRESS_BYTES = 4_096;
/** `close_session.grace_ms` when none is given, and at most. */
export const DEFAULT_CLOSE_GRACE_MS = 8_000;
/** The longest `close_session.grace_ms`. */
export const MAX_CLOSE_GRACE_MS = 20_000;
/** The longest `cancel.wait_ms`. */
export const MAX_CANCEL_WAIT_MS = 20_000;
/** `inspect.limit` when none is given. */
export const DEFAULT_INSPECT_LIMIT = 100;
/** The largest `inspect.limit`. */
export const MAX_INSPECT_LIMIT = 500;
/** An inspection cursor. */
export const MAX_CURSOR_BYTES = 512;

/** How the values of a Tay v1 frame are bounded. Tay itself stops at 32 levels, its own client sends 33. */
export const JSON_LIMITS: JsonLimits = { maxDepth: 33, maxValues: 10_000, maxKeyBytes: 4_096, maxIntegerDigits: 4_300 };
/** How the values of a `reelhost.1` frame are bounded: their number only by the frame's size. */
export const JSON_LIMITS_EXTENSION: JsonLimits = { ...JSON_LIMITS, maxValues: Number.POSITIVE_INFINITY };

/** How one value inside a Tay v1 message is bounded: a level less, and room for the fields around it. */
export const VALUE_LIMITS: JsonLimits = { ...JSON_LIMITS, maxDepth: 32, maxValues: 9_990 };
/** The same on a `reelhost.1` connection. */
export const VALUE_LIMITS_EXTENSION: JsonLimits = { ...JSON_LIMITS_EXTENSION, maxDepth: 32 };

/** What a broker may bound otherwise than the language does, as far as requests are judged while they are read. */
export interface RequestLimits {
  /** Request, runtime, submission, declaration, reservation and execution ids. */
  readonly maxIdBytes: number;
  /** Task keys and queue names. */
  readonly maxNameBytes: number;
  readonly maxTasksPerMessage: number;
  readonly maxConcurrency: number;
  /** Arguments of a schedule; those of an enqueue are judged when it is acted on. */
  readonly maxArgsBytes: number;
  readonly defaultTimeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly defaultRetries: number;
  readonly maxRetries: number;
  readonly sessionGraceMs: number;
  readonly maxSessionGraceMs: number;
  readonly maxCancelWaitMs: number;
}

/** The limits of requests where nobody has set others, on a Tay v1 connection. */
export const REQUEST_LIMITS: RequestLimits = {
  maxIdBytes: MAX_ID_BYTES,
  maxNameBytes: MAX_KEY_BYTES,
  maxTasksPerMessage: MAX_TASKS_PER_MESSAGE,
  maxConcurrency: MAX_CONCURRENCY,
  maxArgsBytes: MAX_ARGS_BYTES,
  defaultTimeoutMs: DEFAULT_JOB_TIMEOUT_MS,
  maxTimeoutMs: MAX_JOB_TIMEOUT_MS,
  defaultRetries: 0,
  maxRetries: MAX_RETRIES,
  sessionGraceMs: DEFAULT_CLOSE_GRACE_MS,
  maxSessionGraceMs: MAX_CLOSE_GRACE_MS,
  maxCancelWaitMs: MAX_CANCEL_WAIT_MS,
};
/** The same on a `reelhost.1` connection. */
export const REQUEST_LIMITS_EXTENSION: RequestLimits = { ...REQUEST_LIMITS, maxArgsBytes: MAX_ARGS_BYTES_EXTENSION };
