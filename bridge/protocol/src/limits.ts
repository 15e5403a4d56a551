/**
 * Every number of the specification in one place, with its unit in its name. Adapters read them from here; a number that a `welcome` may
 * change (heartbeat, dead-after, inline bytes) is the default that holds until a welcome says otherwise.
 */

/** Largest serialized payload, in UTF-8 bytes: 4 MiB (Transport and envelope, limits). */
export const MAX_PAYLOAD_BYTES = 4_194_304;

/** What the envelope around a payload may add before a receiver closes with 1009. */
export const ENVELOPE_ALLOWANCE_BYTES = 65_536;

/** A receiver's read limit for one message: payload limit plus 64 KiB. */
export const MAX_MESSAGE_BYTES = MAX_PAYLOAD_BYTES + ENVELOPE_ALLOWANCE_BYTES;

/** Longest `maxBytes` of read and readFile: 4 MiB. */
export const MAX_INLINE_READ_BYTES = 4_194_304;

/** Inline cap of ffprobe's stdout: 4 MiB. */
export const MAX_PROBE_STDOUT_BYTES = 4_194_304;

/** A runner sends a heartbeat this often (`welcome.heartbeatSec`). */
export const HEARTBEAT_SEC = 15;

/** A connection silent for this long is dead (`welcome.deadAfterSec`), closed 4408. */
export const DEAD_AFTER_SEC = 45;

/** A lease lasts this long from assign and from each listing in a heartbeat. */
export const LEASE_SEC = 45;

/** The gateway closes a connection that sends no hello within this time (4400). */
export const HELLO_DEADLINE_SEC = 10;

/** An assign is answered with accept or reject within this time. */
export const ASSIGN_ANSWER_SEC = 10;

/** `cancel.graceSec`: the process is gone and complete{cancelled} is sent within this time. */
export const CANCEL_GRACE_SEC = 10;

/** Largest |now - ts| of a hello. */
export const HELLO_SKEW_SEC = 120;

/** Shortest life of an entry of the gateway's (deviceId, nonce) replay cache. */
export const REPLAY_CACHE_SEC = 240;

/** A hello nonce has at least this many random bytes. */
export const NONCE_MIN_BYTES = 16;

/** The gateway's reaper runs this often. */
export const REAPER_SEC = 10;

/** Attempts of a one-shot job. */
export const DEFAULT_MAX_ATTEMPTS = 2;

/** Largest session lifetime, `assign.timeoutSec`. */
export const MAX_SESSION_SEC = 14_400;

/** `limits.idleTimeoutSec` when an assign does not say: a session without an op for this long is closed. */
export const DEFAULT_IDLE_TIMEOUT_SEC = 1_800;

/** Results a worker keeps per session; an opId that aged out answers `op_expired`. */
export const OP_CACHE_SIZE = 256;

/** A cloud worker's drain: one-shot jobs may finish within this time. */
export const DRAIN_SEC = 120;

/** A job token lives at most the job's timeout plus this. */
export const JOB_TOKEN_MARGIN_SEC = 300;

/** The gateway looks at `revoked_at` of open desktop connections at least this often. */
export const REVOCATION_CHECK_SEC = 60;

/** Life of a presigned GET and PUT (Presigned URLs and object storage). */
export const PRESIGNED_GET_SEC = 900;
export const PRESIGNED_PUT_SEC = 1_800;

/** Default caps of one object, by what it is. */
export const DEFAULT_OUTPUT_CAPS_BYTES = {
  render: 2 * 1024 ** 3,
  compile: 4 * 1024 ** 3,
  extract: 256 * 1024 ** 2,
  wav: 512 * 1024 ** 2,
} as const;
