/** The requests that only exist on a `reelhost.1` connection. */
import { type Envelope, isBoundedText } from './envelope.js';
import { isJobId } from './job-ids.js';
import {
  DEFAULT_INSPECT_LIMIT,
  MAX_CURSOR_BYTES,
  MAX_ID_BYTES,
  MAX_INSPECT_LIMIT,
  MAX_LABELS_BYTES,
  MAX_PROGRESS_BYTES,
  MAX_WATCHED_JOBS,
  REQUEST_LIMITS,
  type RequestLimits,
} from './limits.js';
import type { JsonValue } from './raw-json.js';
import { INSPECTABLE, type Inspect, type ProgressReport, SESSION_ID } from './request-messages.js';
import { accept, type RequestResult, refuse, reportIds } from './request-result.js';

/** Reads an extension request; the caller has seen that its type is one. */
export function readExtensionRequest(envelope: Envelope, limits: RequestLimits = REQUEST_LIMITS): RequestResult {
  const request_id = envelope.requestId;
  switch (envelope.type as 'open_session' | 'close_session' | 'watch' | 'progress' | 'watch_registry' | 'inspect') {
    case 'open_session':
      return readOpenSession(envelope, limits);
    case 'close_session':
      return readCloseSession(envelope, limits);
    case 'watch': {
      const job_ids = envelope.value('job_ids');
      if (!Array.isArray(job_ids) || job_ids.length > MAX_WATCHED_JOBS || !job_ids.every(isJobId)) {
        return refuse('invalid_watch', `job_ids must be an array of at most ${MAX_WATCHED_JOBS} job ids`);
      }
      return accept({ type: 'watch', request_id, job_ids });
    }
    case 'progress':
      return readProgressRequest(envelope);
    case 'watch_registry':
      return accept({ type: 'watch_registry', request_id });
    case 'inspect':
      return readInspect(envelope);
  }
}

function sessionId(envelope: Envelope): string | undefined {
  const value = envelope.value('session_id');
  return typeof value === 'string' && SESSION_ID.test(value) ? value : undefined;
}

const BAD_SESSION_ID = 'session_id must match [A-Za-z0-9][A-Za-z0-9._-]{0,127}';

function readOpenSession(envelope: Envelope, { maxNameBytes }: RequestLimits): RequestResult {
  const session_id = sessionId(envelope);
  if (session_id === undefined) return refuse('invalid_session', BAD_SESSION_ID);
  const task = envelope.value('task');
  if (!isBoundedText(task, maxNameBytes))
    return refuse('invalid_session', `task must have 1 to ${maxNameBytes} bytes without NUL`);
  const labels = envelope.value('labels') ?? {};
  if (
    typeof labels !== 'object' ||
    Array.isArray(labels) ||
    !Object.values(labels).every((label) => typeof label === 'string') ||
    Buffer.byteLength(JSON.stringify(labels)) > MAX_LABELS_BYTES
  ) {
    return refuse('invalid_session', `labels must be an object of strings of at most ${MAX_LABELS_BYTES} bytes`);
  }
  const request_id = envelope.requestId;
  return accept({ type: 'open_session', request_id, session_id, task, labels: labels as Record<string, string> });
}

function readCloseSession(envelope: Envelope, { sessionGraceMs, maxSessionGraceMs }: RequestLimits): RequestResult {
  const session_id = sessionId(envelope);
  if (session_id === undefined) return refuse('invalid_session', BAD_SESSION_ID);
  const grace_ms = envelope.value('grace_ms') ?? sessionGraceMs;
  if (typeof grace_ms !== 'number' || !Number.isInteger(grace_ms) || grace_ms < 0 || grace_ms > maxSessionGraceMs) {
    return refuse('invalid_session', `grace_ms must be a whole number in 0..${maxSessionGraceMs}`);
  }
  return accept({ type: 'close_session', request_id: envelope.requestId, session_id, grace_ms });
}

function readProgressRequest(envelope: Envelope): RequestResult {
  const ids = reportIds(envelope);
  if (ids === undefined) return refuse('invalid_execution', 'reservation_id and execution_id must have 1 to 128 bytes');
  const text = envelope.raw('progress');
  if (text === undefined || Buffer.byteLength(text) > MAX_PROGRESS_BYTES) {
    return refuse('invalid_progress', `progress must be an object of at most ${MAX_PROGRESS_BYTES} bytes`);
  }
  const progress = readProgress(envelope.value('progress'));
  if (typeof progress === 'string') return refuse('invalid_progress', progress);
  return accept({ type: 'progress', request_id: envelope.requestId, ...ids, progress });
}

/** Reads a progress object; answers a sentence when it is wrong. */
export function readProgress(value: JsonValue | undefined): ProgressReport | string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'progress must be an object';
  const stage = value['stage'];
  if (typeof stage !== 'string') return 'progress.stage must be a string';
  const progress: { -readonly [K in keyof ProgressReport]: ProgressReport[K] } = { stage };
  const percent = value['percent'] ?? null;
  if (percent !== null) {
    if (typeof percent !== 'number' || !(percent >= 0 && percent <= 100)) return 'progress.percent must lie in 0..100';
    progress.percent = percent;
  }
  const detail = value['detail'] ?? null;
  if (detail !== null) {
    if (typeof detail !== 'string') return 'progress.detail must be a string';
    progress.detail = detail;
  }
  return progress;
}

function readInspect(envelope: Envelope): RequestResult {
  const value = envelope.value('what');
  const what = INSPECTABLE.find((name) => name === value);
  if (what === undefined) return refuse('invalid_inspect', `what must be one of ${INSPECTABLE.join(', ')}`);
  const limit = envelope.value('limit') ?? DEFAULT_INSPECT_LIMIT;
  if (typeof limit !== 'number' || !Number.isInteger(limit) || limit < 1 || limit > MAX_INSPECT_LIMIT) {
    return refuse('invalid_inspect', `limit must be a whole number in 1..${MAX_INSPECT_LIMIT}`);
  }
  const request: { -readonly [K in keyof Inspect]: Inspect[K] } = {
    type: 'inspect',
    request_id: envelope.requestId,
    what,
    limit,
  };
  for (const [name, most] of [
    ['id', MAX_ID_BYTES],
    ['cursor', MAX_CURSOR_BYTES],
    ['state', MAX_ID_BYTES],
  ] as const) {
    const text = envelope.value(name) ?? null;
    if (text === null) continue;
    if (!isBoundedText(text, most)) return refuse('invalid_inspect', `${name} must have 1 to ${most} bytes`);
    request[name] = text;
  }
  if ((what === 'job' || what === 'session') && request.id === undefined) {
    return refuse('invalid_inspect', `inspecting a ${what} needs its id`);
  }
  return accept(request);
}
