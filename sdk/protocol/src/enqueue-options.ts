/**
 * The options of `enqueue` and `schedule`: what each may be, and which exclude each other. An unknown option is an error, because a
 * sender who believes in it would be wrong; a null option counts as absent.
 */
import { isBoundedText } from './envelope.js';
import { isJobId } from './job-ids.js';
import { DEFAULT_QUEUE, REQUEST_LIMITS, type RequestLimits } from './limits.js';
import type { JsonValue } from './raw-json.js';
import type { EnqueueOptions } from './request-messages.js';

/** The options of a request that gives none. */
export const DEFAULT_OPTIONS: EnqueueOptions = {
  retries: REQUEST_LIMITS.defaultRetries,
  timeout_ms: REQUEST_LIMITS.defaultTimeoutMs,
  queue: DEFAULT_QUEUE,
};

/** The same where a broker has set other limits. */
export function defaultOptions(limits: RequestLimits): EnqueueOptions {
  const { defaultRetries, defaultTimeoutMs } = limits;
  if (defaultRetries === DEFAULT_OPTIONS.retries && defaultTimeoutMs === DEFAULT_OPTIONS.timeout_ms)
    return DEFAULT_OPTIONS;
  return { retries: defaultRetries, timeout_ms: defaultTimeoutMs, queue: DEFAULT_QUEUE };
}

/** Normal options, or the sentence that says what is wrong. */
export type OptionsResult = EnqueueOptions | string;

function isWhole(value: JsonValue, min: number, max: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max;
}

type Draft = { -readonly [K in keyof EnqueueOptions]: EnqueueOptions[K] };
type Setter = (draft: Draft, value: JsonValue, limits: RequestLimits) => string | undefined;

const LATEST_MS = 8_640_000_000_000_000;

/** Seconds as whole milliseconds, or undefined when it is no number in `min..max` milliseconds. */
export function secondsToMs(value: JsonValue, minMs: number, maxMs: number): number | undefined {
  if (typeof value !== 'number') return undefined;
  const ms = Math.round(value * 1000);
  return ms >= minMs && ms <= maxMs && value >= 0 ? ms : undefined;
}

const SETTERS: Readonly<Record<string, Setter>> = {
  id(draft, value) {
    if (!isJobId(value)) return 'id must be 32 lower-case hex digits, not all zero';
    draft.id = value;
    return undefined;
  },
  submission_id(draft, value, { maxIdBytes }) {
    if (!isBoundedText(value, maxIdBytes)) return `submission_id must have 1 to ${maxIdBytes} bytes without NUL`;
    draft.submission_id = value;
    return undefined;
  },
  delay(draft, value) {
    const ms = secondsToMs(value, 0, LATEST_MS);
    if (ms === undefined) return 'delay must be a number of seconds from 0 on';
    draft.delay_ms = ms;
    return undefined;
  },
  delay_ms(draft, value) {
    if (!isWhole(value, 0, LATEST_MS)) return 'delay_ms must be a whole number from 0 on';
    draft.delay_ms = value;
    return undefined;
  },
  run_at(draft, value) {
    if (!isWhole(value, 0, LATEST_MS)) return 'run_at must be UTC milliseconds';
    draft.run_at = value;
    return undefined;
  },
  retries(draft, value, { maxRetries }) {
    if (!isWhole(value, 0, maxRetries)) return `retries must be a whole number in 0..${maxRetries}`;
    draft.retries = value;
    return undefined;
  },
  timeout(draft, value, { maxTimeoutMs }) {
    const ms = secondsToMs(value, 1, maxTimeoutMs);
    if (ms === undefined) return `timeout must be a number of seconds above 0, at most ${maxTimeoutMs / 1000}`;
    draft.timeout_ms = ms;
    return undefined;
  },
  timeout_ms(draft, value, { maxTimeoutMs }) {
    if (!isWhole(value, 1, maxTimeoutMs)) return `timeout_ms must be a whole number in 1..${maxTimeoutMs}`;
    draft.timeout_ms = value;
    return undefined;
  },
  backoff(_draft, value) {
    return value === 'exponential' ? undefined : 'backoff can only be "exponential"';
  },
  durability(_draft, value) {
    // A newer Tay lets a producer ask for less; here every job is kept, which is never worse.
    return value === 'persistent' || value === 'volatile' ? undefined : 'durability must be "persistent" or "volatile"';
  },
  queue(draft, value, { maxNameBytes }) {
    if (!isBoundedText(value, maxNameBytes)) return `queue must have 1 to ${maxNameBytes} bytes without NUL`;
    draft.queue = value;
    return undefined;
  },
};

const EXCLUSIVE: readonly (readonly [string, string])[] = [
  ['id', 'submission_id'],
  ['delay', 'delay_ms'],
  ['delay', 'run_at'],
  ['delay_ms', 'run_at'],
  ['timeout', 'timeout_ms'],
];

/** Reads the `options` object; undefined or null means none. */
export function readOptions(value: JsonValue | undefined, limits: RequestLimits = REQUEST_LIMITS): OptionsResult {
  const defaults = defaultOptions(limits);
  if (value === undefined || value === null) return defaults;
  if (typeof value !== 'object' || Array.isArray(value)) return 'options must be an object';
  const draft: Draft = { ...defaults };
  const given = Object.entries(value).filter(([, option]) => option !== null);
  for (const [name, option] of given) {
    if (!Object.hasOwn(SETTERS, name)) return `unknown option ${JSON.stringify(name.slice(0, 64))}`;
    const problem = SETTERS[name]?.(draft, option, limits);
    if (problem !== undefined) return problem;
  }
  if (given.length > 1) {
    const names = new Set(given.map(([name]) => name));
    for (const [a, b] of EXCLUSIVE) {
      if (names.has(a) && names.has(b)) return `give ${a} or ${b}, not both`;
    }
  }
  return draft;
}
