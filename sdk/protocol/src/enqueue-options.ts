/**
 * The options of `enqueue` and `schedule`: what each may be, and which exclude each other. An unknown option is an error, because a
 * sender who believes in it would be wrong; a null option counts as absent.
 */
import { isBoundedText } from './envelope.js';
import { isJobId } from './job-ids.js';
import {
  DEFAULT_JOB_TIMEOUT_MS,
  DEFAULT_QUEUE,
  MAX_ID_BYTES,
  MAX_JOB_TIMEOUT_MS,
  MAX_KEY_BYTES,
  MAX_RETRIES,
} from './limits.js';
import type { JsonValue } from './raw-json.js';
import type { EnqueueOptions } from './request-messages.js';

/** The options of a request that gives none. */
export const DEFAULT_OPTIONS: EnqueueOptions = {
  retries: 0,
  timeout_ms: DEFAULT_JOB_TIMEOUT_MS,
  queue: DEFAULT_QUEUE,
};

/** Normal options, or the sentence that says what is wrong. */
export type OptionsResult = EnqueueOptions | string;

function isWhole(value: JsonValue, min: number, max: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max;
}

type Draft = { -readonly [K in keyof EnqueueOptions]: EnqueueOptions[K] };
type Setter = (draft: Draft, value: JsonValue) => string | undefined;

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
  submission_id(draft, value) {
    if (!isBoundedText(value, MAX_ID_BYTES)) return 'submission_id must have 1 to 128 bytes without NUL';
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
  retries(draft, value) {
    if (!isWhole(value, 0, MAX_RETRIES)) return 'retries must be a whole number in 0..65534';
    draft.retries = value;
    return undefined;
  },
  timeout(draft, value) {
    const ms = secondsToMs(value, 1, MAX_JOB_TIMEOUT_MS);
    if (ms === undefined) return 'timeout must be a number of seconds above 0, at most 86400';
    draft.timeout_ms = ms;
    return undefined;
  },
  timeout_ms(draft, value) {
    if (!isWhole(value, 1, MAX_JOB_TIMEOUT_MS)) return 'timeout_ms must be a whole number in 1..86400000';
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
  queue(draft, value) {
    if (!isBoundedText(value, MAX_KEY_BYTES)) return 'queue must have 1 to 255 bytes without NUL';
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
export function readOptions(value: JsonValue | undefined): OptionsResult {
  if (value === undefined || value === null) return DEFAULT_OPTIONS;
  if (typeof value !== 'object' || Array.isArray(value)) return 'options must be an object';
  const draft: Draft = { ...DEFAULT_OPTIONS };
  const given = Object.entries(value).filter(([, option]) => option !== null);
  for (const [name, option] of given) {
    if (!Object.hasOwn(SETTERS, name)) return `unknown option ${JSON.stringify(name.slice(0, 64))}`;
    const problem = SETTERS[name]?.(draft, option);
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
