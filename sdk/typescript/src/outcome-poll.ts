/** How the outcome of a job is learnt from a broker that pushes none: by asking, first often and then once a second. */
import type { ClientConnection } from './client-connection.js';
import { completed, type JobOutcome, type OutcomeError, outcomeError, readJob } from './client-views.js';
import { BrokerError } from './errors.js';

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;
const REPEATABLE = { repeatable: true };

/** Asks until the job is finished; undefined when `done` says that nobody wants to know any more. @throws BrokerError */
export async function pollOutcome(
  connection: ClientConnection,
  jobId: string,
  done: () => boolean,
): Promise<JobOutcome | undefined> {
  for (let pauseMs = FIRST_PAUSE_MS; !done(); pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 1.5)) {
    const { state } = readJob(await connection.request('status', { job_id: jobId }, REPEATABLE));
    if (state === 'completed') {
      return completed((await connection.request('result', { job_id: jobId }, REPEATABLE)).raw('result') ?? 'null');
    }
    if (state === 'cancelled') {
      return { state, error: { type: 'cancelled', message: 'the job was cancelled', retryable: false } };
    }
    if (state === 'discarded') return { state, error: await keptError(connection, jobId) };
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return undefined;
}

async function keptError(connection: ClientConnection, jobId: string): Promise<OutcomeError> {
  const unknown = { type: 'task_failed', message: 'the job was discarded', retryable: false };
  try {
    await connection.request('result', { job_id: jobId }, REPEATABLE);
    return unknown;
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error;
    return error.details.jobError === undefined ? unknown : outcomeError(error.details.jobError);
  }
}
