/** The two families of errors: what a task says about itself, and what a broker (or the way to it) says to a client. */
import {
  type ErrorCode,
  type JobError,
  type JsonObject,
  MAX_ERROR_DETAILS_BYTES,
  redactLine,
} from '@reelhost/protocol';
import { toWellFormed } from './core/unicode.js';

/** More about a `TaskError`. */
export interface TaskErrorOptions {
  /** Whether doing the same work again may succeed; default false. */
  readonly retryable?: boolean;
  /** Further facts for the producer, at most 16 KiB of JSON. */
  readonly details?: JsonObject;
  readonly cause?: unknown;
}

/** A failure a task declares: `code` becomes the `type` of the job's error. Anything else that is thrown is a bug of the task. */
export class TaskError extends Error {
  override readonly name = 'TaskError';
  readonly code: string;
  readonly retryable: boolean;
  readonly details: JsonObject | undefined;

  constructor(code: string, message: string, options: TaskErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? false;
    this.details = options.details;
  }
}

/**
 * Codes that arise on this side of the wire. `not_running`: nobody listens at the socket; `connect_timeout`: somebody does, but no
 * handshake came about; `request_timeout`: no reply in time; `unknown_outcome`: the connection was cut before the reply;
 * `client_closed`: `close()` was called; `protocol_violation`: the broker sent what it must not; `not_supported`: the broker does not
 * speak reelhost.1.
 */
export type LocalErrorCode =
  | 'not_running'
  | 'connect_timeout'
  | 'request_timeout'
  | 'unknown_outcome'
  | 'client_closed'
  | 'protocol_violation'
  | 'not_supported';

/** Codes of refusals of hello that may pass by waiting. */
export const PASSING_REFUSALS: ReadonlySet<string> = new Set([
  'unavailable',
  'connection_closed',
  'capacity',
  'disk_full',
  'request_timeout',
]);

/** More about a `BrokerError`. */
export interface BrokerErrorOptions {
  readonly reason?: string;
  /** The kept error of a job, for `task_failed` and `job_cancelled`. */
  readonly jobError?: JobError;
  readonly cause?: unknown;
}

/** A request was refused, or could not be brought to the broker. Decide by `code`. */
export class BrokerError extends Error {
  override readonly name = 'BrokerError';
  readonly code: ErrorCode | LocalErrorCode | (string & {});
  readonly details: { readonly reason?: string; readonly jobError?: JobError };

  constructor(code: ErrorCode | LocalErrorCode | (string & {}), message: string, options: BrokerErrorOptions = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.details = {
      ...(options.reason === undefined ? {} : { reason: options.reason }),
      ...(options.jobError === undefined ? {} : { jobError: options.jobError }),
    };
  }
}

/** The longest message or stack that is reported. */
const MAX_TEXT_CHARACTERS = 4_000;

function clip(text: string, characters: number): string {
  const clean = toWellFormed(redactLine(text));
  return clean.length <= characters ? clean : `${toWellFormed(clean.slice(0, characters - 1))}…`;
}

/** Details beyond what a report may carry are left out: the failure itself must arrive. */
function detailsOf(thrown: TaskError): { details?: JsonObject } {
  if (thrown.details === undefined) return {};
  const details = withoutSecrets(thrown.details);
  return Buffer.byteLength(JSON.stringify(details)) > MAX_ERROR_DETAILS_BYTES ? {} : { details };
}

/** Details are journaled and travel as far as the message does, so they lose the same secrets. */
function withoutSecrets(details: JsonObject): JsonObject {
  return JSON.parse(redactLine(JSON.stringify(details))) as JsonObject;
}

/**
 * What a thrown value looks like in `failed.error`, as JSON text of at most `maxBytes`. Secrets are taken out of its texts. The
 * stack is only told for errors the task did not declare.
 */
export function describeFailure(thrown: unknown, extension: boolean, maxBytes: number): string {
  for (let characters = MAX_TEXT_CHARACTERS; ; characters = Math.floor(characters / 2)) {
    const text = JSON.stringify(
      failureFields(thrown, extension && characters === MAX_TEXT_CHARACTERS, extension, characters),
    );
    if (Buffer.byteLength(text) <= maxBytes || characters < 8) return text;
  }
}

function failureFields(thrown: unknown, withDetails: boolean, extension: boolean, characters: number): JsonObject {
  if (thrown instanceof TaskError) {
    return {
      type: clip(thrown.code, 120),
      message: clip(thrown.message, characters),
      ...(extension ? { retryable: thrown.retryable } : {}),
      ...(withDetails ? detailsOf(thrown) : {}),
    };
  }
  if (!(thrown instanceof Error)) return { type: 'Error', message: clip(String(thrown), characters) };
  return {
    type: clip(thrown.name === '' ? 'Error' : thrown.name, 120),
    message: clip(thrown.message, characters),
    ...(thrown.stack === undefined ? {} : { traceback: clip(thrown.stack, characters) }),
  };
}
