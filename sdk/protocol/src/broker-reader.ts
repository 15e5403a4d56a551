/**
 * Reads what a broker sends, for clients and executors. Tolerant: unknown fields are ignored, an unknown type is answered as
 * undefined and must be ignored by the caller. What a client relies on is checked; everything else is passed on as it came.
 */
import type { BrokerMessage, JobError, WireError } from './broker-messages.js';
import type { Envelope } from './envelope.js';
import { readProgress } from './extension-requests.js';
import { type JsonObject, type JsonValue, RAW_NULL, RawJson } from './raw-json.js';

/** Thrown when a known message of the broker lacks what its type promises. */
export class ProtocolViolation extends Error {
  override readonly name = 'ProtocolViolation';
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(envelope: Envelope, name: string): string {
  const value = envelope.value(name);
  if (typeof value !== 'string') throw new ProtocolViolation(`${envelope.type}: ${name} is not a string`);
  return value;
}

function whole(envelope: Envelope, name: string): number {
  const value = envelope.value(name);
  if (typeof value !== 'number') throw new ProtocolViolation(`${envelope.type}: ${name} is not a number`);
  return value;
}

function rawOf(envelope: Envelope, name: string): RawJson {
  const value = envelope.raw(name);
  return value === undefined ? RAW_NULL : RawJson.trusted(value);
}

/** Reads an error object of a job; missing parts get honest defaults. */
export function readJobError(value: JsonValue | undefined): JobError {
  const error = isObject(value) ? value : {};
  const message = typeof error['message'] === 'string' ? error['message'] : '';
  return {
    type: typeof error['type'] === 'string' && error['type'] !== '' ? error['type'] : 'task_failed',
    message,
    retryable: error['retryable'] === true,
    ...(isObject(error['details']) ? { details: RawJson.trusted(JSON.stringify(error['details'])) } : {}),
    ...(typeof error['traceback'] === 'string' ? { traceback: error['traceback'] } : {}),
  };
}

/** Reads the `error` object of an `error` message. */
export function readWireError(envelope: Envelope): WireError {
  const value = envelope.value('error');
  const error = isObject(value) ? value : {};
  return {
    code: typeof error['code'] === 'string' ? error['code'] : 'unknown_error',
    ...(typeof error['message'] === 'string' ? { message: error['message'] } : {}),
    ...(typeof error['reason'] === 'string' ? { reason: error['reason'] } : {}),
    ...(isObject(error['error']) ? { error: readJobError(error['error']) } : {}),
  };
}

/** The pushes, which a peer must understand; all other messages are replies, read by `readReply`. */
export type Push = Extract<
  BrokerMessage,
  { type: 'execute' | 'cancel_execution' | 'ping' | 'job_settled' | 'job_progress' | 'registry_changed' }
>;

/** Reads a push; undefined when the message is none. @throws ProtocolViolation */
export function readPush(envelope: Envelope): Push | undefined {
  const request_id = envelope.requestId;
  switch (envelope.type as Push['type']) {
    case 'execute': {
      const attempt = envelope.value('attempt');
      const queue = envelope.value('queue');
      const sessionId = envelope.value('session_id');
      return {
        type: 'execute',
        request_id,
        reservation_id: text(envelope, 'reservation_id'),
        execution_id: text(envelope, 'execution_id'),
        job_id: text(envelope, 'job_id'),
        task: text(envelope, 'task'),
        args: rawOf(envelope, 'args'),
        timeout_ms: whole(envelope, 'timeout_ms'),
        ...(typeof attempt === 'number' ? { attempt } : {}),
        ...(typeof queue === 'string' ? { queue } : {}),
        ...(typeof sessionId === 'string' ? { session_id: sessionId } : {}),
      };
    }
    case 'cancel_execution': {
      const given = envelope.value('reason');
      const reason = (['cancel', 'timeout', 'session_closed'] as const).find((name) => name === given);
      return {
        type: 'cancel_execution',
        request_id,
        reservation_id: text(envelope, 'reservation_id'),
        execution_id: text(envelope, 'execution_id'),
        ...(reason === undefined ? {} : { reason }),
      };
    }
    case 'ping':
      return { type: 'ping', request_id, ping_id: text(envelope, 'ping_id') };
    case 'job_settled': {
      const job_id = text(envelope, 'job_id');
      const state = text(envelope, 'state');
      if (state === 'completed') {
        return { type: 'job_settled', request_id, job_id, state, result: rawOf(envelope, 'result') };
      }
      const error = readJobError(envelope.value('error'));
      return { type: 'job_settled', request_id, job_id, state: state === 'cancelled' ? state : 'discarded', error };
    }
    case 'job_progress': {
      const progress = readProgress(envelope.value('progress'));
      if (typeof progress === 'string') throw new ProtocolViolation(`job_progress: ${progress}`);
      return { type: 'job_progress', request_id, job_id: text(envelope, 'job_id'), progress };
    }
    case 'registry_changed': {
      const runtimes = envelope.value('runtimes');
      if (!Array.isArray(runtimes)) throw new ProtocolViolation('registry_changed: runtimes is not an array');
      return { type: 'registry_changed', request_id, runtimes: runtimes as never };
    }
  }
  return undefined;
}
