/**
 * Reads `schedule`. The shape is decided here; whether the cron expression means anything is decided by whoever computes its firings.
 */
import { type OptionsResult, readOptions, secondsToMs } from './enqueue-options.js';
import { type Envelope, isBoundedText } from './envelope.js';
import { MAX_CRON_BYTES, REQUEST_LIMITS, type RequestLimits } from './limits.js';
import { type JsonValue, RawJson } from './raw-json.js';
import type { Schedule } from './request-messages.js';
import { accept, type RequestResult, refuse } from './request-result.js';

const UNIT_MS: Readonly<Record<string, number>> = {
  seconds: 1000,
  minutes: 60_000,
  hours: 3_600_000,
  days: 86_400_000,
};
const LATEST_MS = 8_640_000_000_000_000;

function invalid(message: string): RequestResult {
  return refuse('invalid_schedule', message);
}

/** Minutes east of UTC of `UTC`, `Z`, `±HH` or `±HH:MM`; undefined when it is none of these. */
export function timezoneOffsetMinutes(timezone: string): number | undefined {
  if (timezone === 'UTC' || timezone === 'Z') return 0;
  const match = /^([+-])(\d\d)(?::(\d\d))?$/.exec(timezone);
  if (match === null) return undefined;
  const hours = Number(match[2]);
  const minutes = Number(match[3] ?? '0');
  if (hours > 23 || minutes > 59) return undefined;
  return (match[1] === '-' ? -1 : 1) * (hours * 60 + minutes);
}

function readEvery(value: JsonValue): number | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const entries = Object.entries(value);
  const [unit, count] = entries[0] ?? [];
  if (entries.length !== 1 || unit === undefined || typeof count !== 'number' || !Object.hasOwn(UNIT_MS, unit)) {
    return undefined;
  }
  const ms = Math.round(count * (UNIT_MS[unit] ?? 0));
  return ms >= 1 && ms <= LATEST_MS ? ms : undefined;
}

/** Options of an enqueue that would mean one and the same job for every firing, and what to use instead. */
const NOT_FOR_SCHEDULES = {
  id: 'every firing has a job id of its own; name the schedule by declaration_id',
  submission_id: 'every firing has a job id of its own; name the schedule by declaration_id',
  run_at: 'the schedule says when; use start_at or delay for the first firing',
} as const;

/** Options of every firing, or the sentence that says what is wrong. */
function readFiringOptions(value: JsonValue | undefined, limits: RequestLimits): OptionsResult {
  const options = readOptions(value, limits);
  if (typeof options === 'string') return options;
  for (const name of ['id', 'submission_id', 'run_at'] as const) {
    if (options[name] !== undefined) return `${name} is no option of a schedule: ${NOT_FOR_SCHEDULES[name]}`;
  }
  return options;
}

/** Reads one `schedule`. */
export function readSchedule(envelope: Envelope, limits: RequestLimits = REQUEST_LIMITS): RequestResult {
  const field = (name: string): JsonValue => envelope.value(name) ?? null;
  const task = field('task');
  const { maxNameBytes, maxArgsBytes } = limits;
  if (!isBoundedText(task, maxNameBytes)) return invalid(`task must have 1 to ${maxNameBytes} bytes without NUL`);
  const given = envelope.raw('args') ?? 'null';
  const args = given === 'null' ? '{}' : given;
  if (args.charCodeAt(0) !== 123) return invalid('args must be an object');
  if (args.length * 3 > maxArgsBytes && Buffer.byteLength(args) > maxArgsBytes) {
    return invalid(`args are larger than ${maxArgsBytes} bytes`);
  }
  const timezone = field('timezone') ?? '+00';
  const offset_minutes = typeof timezone === 'string' ? timezoneOffsetMinutes(timezone) : undefined;
  if (typeof timezone !== 'string' || offset_minutes === undefined) {
    return invalid('timezone must be "UTC", "Z", "+HH" or "+HH:MM"');
  }
  const overlap = field('overlap') ?? 'skip';
  if (overlap !== 'allow' && overlap !== 'skip' && overlap !== 'queue') {
    return invalid('overlap must be "allow", "skip" or "queue"');
  }
  const catch_up = field('catch_up') ?? 'latest';
  if (catch_up !== 'latest' && catch_up !== 'all') return invalid('catch_up must be "latest" or "all"');
  const options = readFiringOptions(envelope.value('options'), limits);
  if (typeof options === 'string') return invalid(options);
  const request: { -readonly [K in keyof Schedule]: Schedule[K] } = {
    type: 'schedule',
    request_id: envelope.requestId,
    task,
    args: RawJson.trusted(args),
    timezone,
    offset_minutes,
    overlap,
    catch_up,
    options,
  };
  const problem = readTiming(request, field, limits);
  return problem === undefined ? accept(request) : invalid(problem);
}

function readTiming(
  request: { -readonly [K in keyof Schedule]: Schedule[K] },
  field: (name: string) => JsonValue,
  { maxIdBytes }: RequestLimits,
): string | undefined {
  const cron = field('cron');
  const every = field('every');
  if ((cron === null) === (every === null)) return 'give exactly one of cron and every';
  if (cron !== null) {
    if (!isBoundedText(cron, MAX_CRON_BYTES)) return `cron must have 1 to ${MAX_CRON_BYTES} bytes`;
    request.cron = cron;
  } else {
    const ms = readEvery(every);
    if (ms === undefined) return 'every must have exactly one of seconds, minutes, hours, days, above 0';
    request.every_ms = ms;
  }
  const delay = field('delay');
  const startAt = field('start_at');
  if (delay !== null && startAt !== null) return 'give delay or start_at, not both';
  if (delay !== null) {
    const ms = secondsToMs(delay, 0, LATEST_MS);
    if (ms === undefined) return 'delay must be a number of seconds from 0 on';
    request.delay_ms = ms;
  }
  if (startAt !== null) {
    if (typeof startAt !== 'number' || !Number.isSafeInteger(startAt) || startAt < 0) {
      return 'start_at must be UTC milliseconds';
    }
    request.start_at = startAt;
  }
  const declarationId = field('declaration_id');
  if (declarationId !== null) {
    if (!isBoundedText(declarationId, maxIdBytes))
      return `declaration_id must have 1 to ${maxIdBytes} bytes without NUL`;
    request.declaration_id = declarationId;
  }
  return undefined;
}
