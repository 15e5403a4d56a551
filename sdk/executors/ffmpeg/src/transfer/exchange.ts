/**
 * What downloads and uploads share: the loop of tries, the reading of an error answer, the progress of bytes.
 */
import type { IncomingMessage } from 'node:http';
import { delayBefore, judgeAnswer, parseRetryAfter } from '../core/retry-policy.js';
import { asTransferError, redactUrl, TransferError } from './transfer-error.js';

const ERROR_BODY_BYTES = 8 * 1024;
const ERROR_BODY_MS = 2_000;

/** Replaceable parts, so that tests do not wait. */
export interface TransferClock {
  /** UTC milliseconds, for a Retry-After that is a date. */
  now(): number;
  /** In [0, 1). */
  random(): number;
  /** Rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** The real one. */
export const systemClock: TransferClock = {
  now: () => Date.now(),
  random: () => Math.random(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const stop = (): void => {
        clearTimeout(timer);
        reject(new TransferError('aborted', 'the transfer was stopped'));
      };
      const timer = setTimeout(() => {
        signal.removeEventListener('abort', stop);
        resolve();
      }, ms);
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop, { once: true });
    }),
};

/** One finished try or the error it ended with; `fresh: false` when it failed on a kept connection the store had already closed. */
export type Attempt<T> = (number: number) => Promise<T>;

/** Repeats `attempt` as the retry policy allows. @throws TransferError of the last try. */
export async function withTries<T>(
  url: URL,
  signal: AbortSignal,
  clock: TransferClock,
  attempt: Attempt<T>,
): Promise<T> {
  for (let number = 1; ; number += 1) {
    try {
      return await attempt(number);
    } catch (caught) {
      const error = asTransferError(caught, url);
      if (signal.aborted) throw new TransferError('aborted', 'the transfer was stopped', { cause: error });
      const delay = error.again ? delayBefore(number + 1, clock.random(), error.retryAfterMs) : undefined;
      if (delay === undefined) throw number === 1 ? error : afterTries(error, number);
      await clock.sleep(delay, signal);
    }
  }
}

function afterTries(error: TransferError, tries: number): TransferError {
  return new TransferError(error.code, `${error.message}; given up after ${tries} tries`, {
    retryable: error.retryable,
    ...(error.detail === undefined ? {} : { detail: error.detail }),
    cause: error,
  });
}

/** Turns an answer that is not a success into the error it means; the body is read for at most 8 KiB and 2 s. */
export async function refusal(url: URL, response: IncomingMessage, clock: TransferClock): Promise<TransferError> {
  const status = response.statusCode ?? 0;
  const meaning = judgeAnswer(status, await errorBody(response));
  const where = redactUrl(url);
  switch (meaning.kind) {
    case 'done':
      return new TransferError('failed', `unexpected answer ${status} from ${where}`);
    case 'again': {
      const retryAfterMs = parseRetryAfter(response.headers['retry-after'], clock.now());
      return new TransferError('failed', `${meaning.reason}: ${where}`, {
        again: true,
        retryable: true,
        ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      });
    }
    case 'refused':
      return new TransferError('failed', `${meaning.reason}: ${where}`, {
        retryable: meaning.retryable,
        ...(meaning.detail === undefined ? {} : { detail: meaning.detail }),
      });
  }
}

async function errorBody(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  const timer = setTimeout(() => response.destroy(), ERROR_BODY_MS);
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= ERROR_BODY_BYTES) break;
    }
  } catch {
    // What was read so far is all there is to know.
  } finally {
    clearTimeout(timer);
    if (!response.complete) response.destroy();
  }
  return Buffer.concat(chunks).toString('utf8', 0, ERROR_BODY_BYTES);
}
