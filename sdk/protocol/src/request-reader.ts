/**
 * Turns an envelope into a request, or says with which code it is refused.
 *
 * The broker's hot messages (enqueue, started, succeeded) are read by hand without building their args or results. A refusal with
 * `fatal: true` ends the connection; all others are answered and the connection goes on. What a request means in the present state
 * (hello first, limits of the broker, unknown ids) is not decided here.
 */
import { defaultOptions, type OptionsResult, readOptions } from './enqueue-options.js';
import { type Envelope, isBoundedText } from './envelope.js';
import { readExtensionRequest } from './extension-requests.js';
import { isJobId } from './job-ids.js';
import {
  MAX_ID_BYTES,
  MAX_SECRETS,
  MAX_SECRETS_BYTES,
  REQUEST_LIMITS,
  REQUEST_LIMITS_EXTENSION,
  type RequestLimits,
} from './limits.js';
import { RAW_NULL, RawJson } from './raw-json.js';
import { readFailure } from './report-reader.js';
import { type Enqueue, type RequestType, SESSION_ID } from './request-messages.js';
import { accept, type RequestResult, refuse, reportIds } from './request-result.js';
import { readSchedule } from './schedule-reader.js';
import { readHello, readRegisterTasks, readTaskKeys } from './session-requests.js';

/** How the connection was negotiated. */
export interface RequestContext {
  /** Whether `reelhost.1` was asked for on this connection. */
  readonly extension: boolean;
  /** What the broker has set; absent: the language's own limits. */
  readonly limits?: RequestLimits;
}

/** The types only a `reelhost.1` connection may use. */
export const EXTENSION_REQUESTS: ReadonlySet<string> = new Set<RequestType>([
  'open_session',
  'close_session',
  'watch',
  'progress',
  'watch_registry',
  'inspect',
]);

/** Reads one request; see the head of this file. */
export function parseRequest(envelope: Envelope, context: RequestContext): RequestResult {
  const limits = context.limits ?? (context.extension ? REQUEST_LIMITS_EXTENSION : REQUEST_LIMITS);
  if (limits.maxIdBytes < MAX_ID_BYTES && !isBoundedText(envelope.requestId, limits.maxIdBytes)) {
    return fatal('invalid_frame', `request_id must have 1 to ${limits.maxIdBytes} bytes without NUL`);
  }
  if (EXTENSION_REQUESTS.has(envelope.type)) {
    if (!context.extension) return refuse('extension_required', `${envelope.type} needs the extension reelhost.1`);
    if (envelope.excess !== undefined) return refuse('value_limit', excessText(envelope));
    return readExtensionRequest(envelope, limits);
  }
  if (envelope.excess !== undefined) return refuseExcess(envelope);
  const request_id = envelope.requestId;
  switch (envelope.type as RequestType) {
    case 'enqueue':
      return readEnqueue(envelope, context.extension, limits);
    case 'started':
      return readReport(envelope, (reservation_id, execution_id) =>
        accept({ type: 'started', request_id, reservation_id, execution_id }),
      );
    case 'succeeded':
      return readReport(envelope, (reservation_id, execution_id) => {
        const text = envelope.raw('result');
        const result = text === undefined ? RAW_NULL : RawJson.trusted(text);
        return accept({ type: 'succeeded', request_id, reservation_id, execution_id, result });
      });
    case 'failed':
      return readReport(envelope, (reservation_id, execution_id) => {
        const error = readFailure(envelope, context.extension);
        if (typeof error === 'string') return refuse('invalid_failure', error);
        if ('tooLarge' in error) return refuse('error_too_large', error.tooLarge);
        return accept({ type: 'failed', request_id, reservation_id, execution_id, error });
      });
    case 'status':
    case 'result':
    case 'cancel':
      return readJobRequest(envelope, envelope.type as 'status' | 'result' | 'cancel', context.extension, limits);
    case 'hello':
      return readHello(envelope, limits);
    case 'register_tasks':
      return readRegisterTasks(envelope, context.extension, limits);
    case 'unregister_tasks': {
      const tasks = readTaskKeys(envelope, limits);
      if (typeof tasks === 'string') return refuse('invalid_tasks', tasks);
      return accept({ type: 'unregister_tasks', request_id, tasks });
    }
    case 'heartbeat':
      return accept({ type: 'heartbeat', request_id });
    case 'register_schedules':
      return accept({ type: 'register_schedules', request_id });
    case 'pong': {
      const ping_id = envelope.value('ping_id');
      return accept({ type: 'pong', request_id, ping_id: isBoundedText(ping_id, MAX_ID_BYTES) ? ping_id : '' });
    }
    case 'schedule':
      return readSchedule(envelope, limits);
    case 'cancel_schedule': {
      const schedule_id = envelope.value('schedule_id');
      if (!isBoundedText(schedule_id, MAX_ID_BYTES)) {
        return refuse('invalid_schedule_id', 'schedule_id must have 1 to 128 bytes without NUL');
      }
      return accept({ type: 'cancel_schedule', request_id, schedule_id });
    }
    case 'open_session':
    case 'close_session':
    case 'watch':
    case 'progress':
    case 'watch_registry':
    case 'inspect':
      return readExtensionRequest(envelope, limits);
  }
  const message = `no message has the type ${envelope.type}`;
  return context.extension ? refuse('unknown_message', message) : fatal('unknown_message', message);
}

function fatal(code: 'unknown_message' | 'invalid_frame', message: string): RequestResult {
  return { ok: false, refusal: { code, message, fatal: true } };
}

function excessText(envelope: Envelope): string {
  return `the values of the frame are over a limit: ${(envelope.excess ?? '').replaceAll('_', ' ')}`;
}

/** Over-limit values in a good frame: the request is answered, never acted on. */
function refuseExcess(envelope: Envelope): RequestResult {
  switch (envelope.type) {
    case 'enqueue':
      return refuse('invalid_enqueue', excessText(envelope));
    case 'schedule':
      return refuse('invalid_schedule', excessText(envelope));
    case 'succeeded':
      return refuse('result_too_large', excessText(envelope));
    case 'failed':
      return refuse('error_too_large', excessText(envelope));
  }
  return refuse('value_limit', excessText(envelope));
}

function readReport(
  envelope: Envelope,
  then: (reservationId: string, executionId: string) => RequestResult,
): RequestResult {
  const ids = reportIds(envelope);
  if (ids === undefined) return refuse('invalid_execution', 'reservation_id and execution_id must have 1 to 128 bytes');
  return then(ids.reservation_id, ids.execution_id);
}

function readJobRequest(
  envelope: Envelope,
  type: 'status' | 'result' | 'cancel',
  extension: boolean,
  { maxCancelWaitMs }: RequestLimits,
): RequestResult {
  const request_id = envelope.requestId;
  const job_id = envelope.value('job_id');
  if (!isJobId(job_id)) return refuse('invalid_job_id', 'job_id must be 32 lower-case hex digits, not all zero');
  if (type !== 'cancel') return accept({ type, request_id, job_id });
  const wait_ms = extension ? (envelope.value('wait_ms') ?? 0) : 0;
  if (typeof wait_ms !== 'number' || !Number.isInteger(wait_ms) || wait_ms < 0 || wait_ms > maxCancelWaitMs) {
    return refuse('invalid_request', `wait_ms must be a whole number in 0..${maxCancelWaitMs}`);
  }
  return accept({ type, request_id, job_id, wait_ms });
}

function readEnqueue(envelope: Envelope, extension: boolean, limits: RequestLimits): RequestResult {
  const task = envelope.value('task');
  if (!isBoundedText(task, limits.maxNameBytes))
    return refuse('invalid_enqueue', `task must have 1 to ${limits.maxNameBytes} bytes without NUL`);
  const args = envelope.raw('args');
  if (args === undefined || args.charCodeAt(0) !== 123) return refuse('invalid_enqueue', 'args must be an object');
  const rawOptions = envelope.raw('options');
  const options =
    rawOptions === undefined || rawOptions === '{}' ? defaultOptions(limits) : optionsOf(envelope, rawOptions, limits);
  if (typeof options === 'string') return refuse('invalid_enqueue', options);
  const request: { -readonly [K in keyof Enqueue]: Enqueue[K] } = {
    type: 'enqueue',
    request_id: envelope.requestId,
    task,
    args: RawJson.trusted(args),
    options,
  };
  if (extension) {
    const problem = readEnqueueExtension(envelope, request);
    if (problem !== undefined) return problem;
  }
  return accept(request);
}

/** Producers repeat their options word for word: the ones that were read last, by their text. */
let lastOptions: { readonly text: string; readonly limits: RequestLimits; readonly options: OptionsResult } | undefined;
const REMEMBERED_OPTIONS = 256;

function optionsOf(envelope: Envelope, text: string, limits: RequestLimits): OptionsResult {
  if (lastOptions?.text === text && lastOptions.limits === limits) return lastOptions.options;
  const options = readOptions(envelope.value('options'), limits);
  // A copy: a slice would keep the whole frame.
  if (text.length <= REMEMBERED_OPTIONS) lastOptions = { text: Buffer.from(text).toString(), limits, options };
  return options;
}

function readEnqueueExtension(
  envelope: Envelope,
  request: { -readonly [K in keyof Enqueue]: Enqueue[K] },
): RequestResult | undefined {
  const sessionId = envelope.value('session_id') ?? null;
  if (sessionId !== null) {
    if (typeof sessionId !== 'string' || !SESSION_ID.test(sessionId)) {
      return refuse('invalid_session', 'session_id must match [A-Za-z0-9][A-Za-z0-9._-]{0,127}');
    }
    request.session_id = sessionId;
  }
  const watch = envelope.value('watch') ?? null;
  if (watch !== null) {
    if (typeof watch !== 'boolean') return refuse('invalid_enqueue', 'watch must be a boolean');
    request.watch = watch;
  }
  const secrets = envelope.value('secrets') ?? null;
  if (secrets !== null) {
    if (typeof secrets !== 'object' || Array.isArray(secrets))
      return refuse('invalid_enqueue', 'secrets must be an object');
    const entries = Object.entries(secrets);
    let bytes = 0;
    for (const [name, secret] of entries) {
      if (typeof secret !== 'string') return refuse('invalid_enqueue', 'secrets must have strings as values');
      bytes += Buffer.byteLength(name) + Buffer.byteLength(secret);
    }
    if (entries.length > MAX_SECRETS) return refuse('invalid_enqueue', `more than ${MAX_SECRETS} secrets`);
    if (bytes > MAX_SECRETS_BYTES) return refuse('invalid_enqueue', `secrets of more than ${MAX_SECRETS_BYTES} bytes`);
    request.secrets = secrets as Record<string, string>;
  }
  return undefined;
}
