/**
 * The numbers of the specification that a runner needs, each with its unit in its name. They are read from here; a number that a `welcome` may
 * change (heartbeat, dead-after, inline bytes) is the default that holds until a welcome says otherwise.
 */

/** Largest serialized payload, in UTF-8 bytes: 4 MiB (Transport and envelope, limits). */
export const MAX_PAYLOAD_BYTES = 4_194_304;

/** What the envelope around a payload may add before a receiver closes with 1009. */
const ENVELOPE_ALLOWANCE_BYTES = 65_536;

/** A receiver's read limit for one message: payload limit plus 64 KiB. */
export const MAX_MESSAGE_BYTES = MAX_PAYLOAD_BYTES + ENVELOPE_ALLOWANCE_BYTES;

/** Longest `maxBytes` of read and readFile: 4 MiB. */
export const MAX_INLINE_READ_BYTES = 4_194_304;

/** A runner sends a heartbeat this often (`welcome.heartbeatSec`). */
export const HEARTBEAT_SEC = 15;

/** A connection silent for this long is dead (`welcome.deadAfterSec`), closed 4408. */
export const DEAD_AFTER_SEC = 45;

/** A lease lasts this long from assign and from each listing in a heartbeat. */
export const LEASE_SEC = 45;

/** An assign is answered with accept or reject within this time. */
export const ASSIGN_ANSWER_SEC = 10;

/** `cancel.graceSec`: the process is gone and complete{cancelled} is sent within this time. */
export const CANCEL_GRACE_SEC = 10;

/** Largest |now - ts| of a hello. */
export const HELLO_SKEW_SEC = 120;

/** A hello nonce has at least this many random bytes. */
export const NONCE_MIN_BYTES = 16;

/** Largest session lifetime, `assign.timeoutSec`. */
export const MAX_SESSION_SEC = 14_400;

/** `limits.idleTimeoutSec` when an assign does not say: a session without an op for this long is closed. */
export const DEFAULT_IDLE_TIMEOUT_SEC = 1_800;

/** Results a worker keeps per session; an opId that aged out answers `op_expired`. */
export const OP_CACHE_SIZE = 256;

/** A cloud worker's drain: one-shot jobs may finish within this time. */
export const DRAIN_SEC = 120;
