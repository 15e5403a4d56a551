/** Reading what a broker says: which errors pass and which are final, outcomes, sessions, statistics; and the ids a remote op has there. */
import { hash } from 'node:crypto';
import { redactLine, submissionJobId } from '@reelhost/protocol';
import { type BrokerClient, BrokerError, type JobOutcome } from '@reelhost/sdk';
import type { OpOutcome } from './core/index.js';

/** Errors that pass: what they hit is said again after the next connection. */
export const PASSING: ReadonlySet<string> = new Set([
  'unavailable',
  'connection_closed',
  'not_running',
  'connect_timeout',
  'request_timeout',
  'unknown_outcome',
  'client_closed',
  'shutting_down',
]);
/** The session id was used up by an earlier epoch. */
export const USED: ReadonlySet<string> = new Set(['session_closed', 'session_conflict']);
/** The session of a running job is gone. */
export const LOST: ReadonlySet<string> = new Set(['session_not_found', 'session_closed', 'session_lost']);

/** The submission id of a remote op: the same op of the same session is the same local job, for ever. */
export function submissionIdOf(localId: string, opId: string): string {
  return `op:${hash('sha256', `${localId}|${opId}`)}`;
}

/** The local job id of a remote op. */
export function jobIdOf(localId: string, opId: string): string {
  return submissionJobId(submissionIdOf(localId, opId));
}

/** A job's outcome in the words of the core. */
export function outcomeOf(outcome: JobOutcome): OpOutcome {
  if (outcome.state === 'completed') return { ok: true, resultText: outcome.resultJson };
  const { type, message, retryable } = outcome.error;
  return { ok: false, code: type, message: redactLine(message), retryable };
}

/** Id and owner of an inspected session. */
export function sessionFacts(session: unknown): { id: string | null; owner: string | null } {
  if (typeof session !== 'object' || session === null || !('session_id' in session)) return { id: null, owner: null };
  const labels =
    'labels' in session && typeof session.labels === 'object' && session.labels !== null ? session.labels : {};
  const owner = 'owner' in labels && typeof labels.owner === 'string' ? labels.owner : null;
  return { id: typeof session.session_id === 'string' ? session.session_id : null, owner };
}

/** Whether inspected statistics say that the journal cannot be written. */
export function isDegraded(stats: unknown): boolean {
  if (typeof stats !== 'object' || stats === null || !('journal' in stats)) return false;
  const { journal } = stats;
  return typeof journal === 'object' && journal !== null && 'degraded' in journal && journal.degraded !== null;
}

/** The code of any error. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'error';
}

/** Waits for the promise, but not longer. @throws BrokerError `request_timeout` */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new BrokerError('request_timeout', `no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
    promise.catch(() => undefined);
  }
}

/**
 * How a job of the past ended, without starting anything; null: there is no such job, or it has not ended.
 *
 * @throws BrokerError when the broker cannot be asked
 */
export async function recalledOutcome(client: BrokerClient | null, jobId: string): Promise<OpOutcome | null> {
  if (client === null) throw new BrokerError('unavailable', 'the broker is not connected');
  try {
    return { ok: true, resultText: (await client.result(jobId)).resultJson };
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error;
    const { jobError } = error.details;
    if (jobError !== undefined) {
      const { type, message, retryable } = jobError;
      return { ok: false, code: type, message: redactLine(message), retryable: retryable === true };
    }
    if (error.code === 'job_expired') return { ok: false, code: error.code, message: error.message, retryable: false };
    if (error.code === 'not_found' || error.code === 'result_not_ready') return null;
    throw error;
  }
}
