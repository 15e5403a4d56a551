/**
 * The closed table of faults that end a connection because its bytes cannot be read: the wire code of each, what is wrong, and what to do.
 * Both go to the peer as `message`, and into the log: whoever writes an executor reads that first. Programs decide by code; this side by `cause`.
 */
import type { ErrorCode } from './error-codes.js';
import { MAX_ID_BYTES, MAX_TYPE_BYTES } from './limits.js';

type Row = readonly [code: ErrorCode, wrong: string, advice: string];

const ONE_OBJECT = 'send one JSON object per frame';

const JSON_FAULTS = {
  unexpected_end: [
    'malformed_json',
    'the JSON ends too early',
    'the length before the payload must count all its bytes',
  ],
  unexpected_character: [
    'malformed_json',
    'a character that JSON does not allow there',
    'write the payload with a JSON library',
  ],
  trailing_data: ['malformed_json', 'something follows the JSON value', ONE_OBJECT],
  control_character: [
    'malformed_json',
    'a control character stands as it is in a string',
    'escape it, as in \\n or \\u001b',
  ],
  bad_escape: [
    'malformed_json',
    'a string has an escape that JSON does not have',
    'after \\ comes one of "\\/bfnrt, or u and four hex digits',
  ],
  lone_surrogate: [
    'malformed_json',
    'a string has half a surrogate pair (\\ud800 to \\udfff)',
    'write both halves, or neither',
  ],
  bad_number: [
    'malformed_json',
    'a number that JSON does not have',
    'no leading zeros, and digits on both sides of a point',
  ],
  duplicate_key: ['invalid_frame', 'an object has a key twice', 'send each key once'],
} as const satisfies Record<string, Row>;

const FAULTS = {
  ...JSON_FAULTS,
  empty_frame: ['invalid_frame', 'a frame of 0 bytes', ONE_OBJECT],
  announced_length: [
    'frame_too_large',
    'the announced length is over the limit of a frame',
    'send less at once, and before each payload its length as four bytes, the highest first',
  ],
  unread_frames: ['buffer_limit', 'too many unread bytes are waiting', 'read the replies before you send more'],
  bad_utf8: ['malformed_json', 'the payload is not UTF-8', 'encode it as UTF-8'],
  not_an_object: ['invalid_frame', 'the payload is JSON, but no object', ONE_OBJECT],
  version_alias_differs: ['invalid_frame', 'version and v differ', 'send version alone'],
  version_not_1: ['unsupported_version', 'version is missing or not the integer 1', 'send "version":1'],
  bad_type: ['invalid_frame', 'type is missing or wrong', `send a string of 1 to ${MAX_TYPE_BYTES} bytes without NUL`],
  bad_request_id: [
    'invalid_frame',
    'request_id is missing or wrong',
    `send a string of 1 to ${MAX_ID_BYTES} bytes without NUL`,
  ],
} as const satisfies Record<string, Row>;

/** Why a text is not acceptable JSON. */
export type MalformedReason = keyof typeof JSON_FAULTS;

/** What exactly is wrong, for programs and tests of this side; not on the wire. */
export type FaultCause = keyof typeof FAULTS;

/** Why a stream or a payload cannot be read. Fatal to the connection. */
export interface ProtocolFault {
  /** The wire code of the one uncorrelated error that is sent before closing. */
  readonly code: (typeof FAULTS)[FaultCause][0];
  readonly cause: FaultCause;
  /** What is wrong and what to do: the `message` of that error. */
  readonly reason: string;
}

/** The fault of a cause; `where` stands behind what is wrong. */
export function protocolFault(cause: FaultCause, where?: string): ProtocolFault {
  const [code, wrong, advice] = FAULTS[cause];
  return { code, cause, reason: `${wrong}${where === undefined ? '' : ` (${where})`}; ${advice}` };
}
