/**
 * The error object of `failed`: which fields count, how large they may be. The size of the whole object is the broker's to judge
 * (it settles an oversized one as `error_too_large`), because its limit is a setting.
 */
import type { Envelope } from './envelope.js';
import { isBoundedText } from './envelope.js';
import { MAX_ERROR_DETAILS_BYTES, MAX_ERROR_TYPE_BYTES } from './limits.js';
import { type JsonObject, RawJson } from './raw-json.js';
import type { FailureReport } from './request-messages.js';

/** A failure whose content is good but too long. */
export interface OversizedFailure {
  readonly tooLarge: string;
}

/** Reads `error`; answers a sentence when it is unusable. */
export function readFailure(envelope: Envelope, extension: boolean): FailureReport | OversizedFailure | string {
  const value = envelope.value('error');
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return 'error must be an object';
  const failure: { -readonly [K in keyof FailureReport]: FailureReport[K] } = {};
  const { type, message, traceback } = value;
  if (type !== undefined) {
    if (type !== '' && !isBoundedText(type, MAX_ERROR_TYPE_BYTES))
      return 'error.type must be a string of at most 128 bytes';
    failure.type = type;
  }
  if (message !== undefined) {
    if (typeof message !== 'string') return 'error.message must be a string';
    failure.message = message;
  }
  if (traceback !== undefined) {
    if (typeof traceback !== 'string') return 'error.traceback must be a string';
    failure.traceback = traceback;
  }
  if (type === undefined && message === undefined && traceback === undefined)
    return 'error needs type, message or traceback';
  if (value['cancelled'] === true) failure.cancelled = true;
  if (extension) {
    if (value['retryable'] === true) failure.retryable = true;
    const details = readDetails(value);
    if (typeof details === 'string') return details;
    if (details !== undefined && 'tooLarge' in details) return details;
    if (details !== undefined) failure.details = details;
  }
  return failure;
}

function readDetails(value: JsonObject): RawJson | OversizedFailure | undefined | string {
  const details = value['details'];
  if (details === undefined || details === null) return undefined;
  if (typeof details !== 'object' || Array.isArray(details)) return 'error.details must be an object';
  const text = JSON.stringify(details);
  return Buffer.byteLength(text) > MAX_ERROR_DETAILS_BYTES
    ? { tooLarge: `error.details has more than ${MAX_ERROR_DETAILS_BYTES} bytes` }
    : RawJson.trusted(text);
}
