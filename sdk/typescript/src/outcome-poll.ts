/** How the outcome of a job is learnt from a broker that pushes none: by asking, first often and then once a second. */

import type { BrokerClient } from './client.js';
import type { JobOutcome } from './client-views.js';
import { completed, outcomeError } from './client-views.js';
import { BrokerError } from './errors.js';

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;

/** Asks until the job is finished; undefined when `done` says that nobody wants to know any more. */
export async function pollOutcome(
  client: BrokerClient,
  jobId: string,
  done: () => boolean,
): Promise<JobOutcome | undefined> {
  for (let pauseMs = FIRST_PAUSE_MS; !done(); pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 1.5)) {
    const job = await client.status(jobId);
    if (job.state === 'completed') return completed((await client.result(jobId)).resultJson);
    if (job.state === 'cancelled') {
      return { state: 'cancelled', error: { type: 'cancelled', message: 'the job was cancelled', retryable: false } };
    }
    if (job.state === 'discarded') return { state: 'discarded', error: await keptError(client, jobId) };
    await new Promise((resolve) => setTimeout(resolve, pauseMs).unref());
  }
  return undefined;
}

async function keptError(client: BrokerClient, jobId: string): Promise<ReturnType<typeof outcomeError>> {
  const unknown = { type: 'task_failed', message: 'the job was discarded', retryable: false };
  try {
    await client.result(jobId);
    return unknown;
  } catch (error) {
    if (!(error instanceof BrokerError)) throw error;
    return error.details.jobError === undefined ? unknown : outcomeError(error.details.jobError);
  }
}
