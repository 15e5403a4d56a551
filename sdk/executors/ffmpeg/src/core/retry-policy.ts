/**
 * Decides what an answer or a broken connection of an object store means, and how long to wait before the next try.
 *
 * A try is repeated only when repeating can help: connection faults, 408, 429, 500, 502, 503, 504. An expired or refused URL (403, or 400 with
 * ExpiredRequest) is tried once: the same URL will not live again, but the engine may mint a new one, so the op's error is retryable.
 * A redirect is never followed: the URL grants one object at one host.
 */

/** What to do with a status code. */
export type AnswerMeaning =
  | { kind: 'done' }
  | { kind: 'again'; reason: string }
  | { kind: 'refused'; reason: string; retryable: boolean; detail?: 'url_expired' | 'redirect' | 'not_found' };

/** Tries per transfer, the first included. */
export const MAX_TRIES = 5;
const FIRST_DELAY_MS = 250;
const MAX_DELAY_MS = 8_000;
/** A store that asks for more patience than this is answered with an error instead. */
export const MAX_RETRY_AFTER_MS = 60_000;

const AGAIN = new Set([408, 425, 429, 500, 502, 503, 504]);

/** `body` is the beginning of the answer's body, for errors only. */
export function judgeAnswer(status: number, body: string): AnswerMeaning {
  if (status >= 200 && status < 300) return { kind: 'done' };
  if (AGAIN.has(status)) return { kind: 'again', reason: `the store answered ${status}` };
  if (status >= 300 && status < 400) {
    return {
      kind: 'refused',
      reason: `the store answered ${status}, and redirects are not followed`,
      retryable: false,
      detail: 'redirect',
    };
  }
  const expired = /ExpiredRequest|ExpiredToken|AccessDenied[\s\S]*expired|[Rr]equest has expired|expired/.test(body);
  if (status === 403) {
    return expired
      ? { kind: 'refused', reason: 'the URL has expired (403)', retryable: true, detail: 'url_expired' }
      : { kind: 'refused', reason: 'the store refused the URL (403)', retryable: true };
  }
  if (status === 400 && expired) {
    return { kind: 'refused', reason: 'the URL has expired (400)', retryable: true, detail: 'url_expired' };
  }
  if (status === 404 || status === 410) {
    return {
      kind: 'refused',
      reason: `the store has no such object (${status})`,
      retryable: false,
      detail: 'not_found',
    };
  }
  return { kind: 'refused', reason: `the store answered ${status}`, retryable: status >= 500 };
}

/**
 * Milliseconds until try number `next` (2 is the first repetition); undefined when there is none.
 * `random` is in [0, 1); `retryAfterMs` is what the store asked for.
 */
export function delayBefore(next: number, random: number, retryAfterMs?: number): number | undefined {
  if (next > MAX_TRIES) return undefined;
  if (retryAfterMs !== undefined) return retryAfterMs > MAX_RETRY_AFTER_MS ? undefined : retryAfterMs;
  const full = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (next - 2));
  return Math.round(full / 2 + (full / 2) * random);
}

/** Reads a Retry-After header: seconds, or a date judged against `nowMs`. Undefined when it says neither. */
export function parseRetryAfter(value: string | undefined, nowMs: number): number | undefined {
  const text = value?.trim();
  if (!text) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}
