/** When the core wants to be called again although nothing happened. */

import { hardEndOf, renewAt } from './draining.js';
import { overdueAt } from './endings.js';
import { PROGRESS_INTERVAL_MS } from './ops.js';
import type { BridgeState, Job, Link } from './state.js';
import { MAX_STEP_GAP_MS } from './step.js';

/** The earliest time at which something is due; never later than the longest step gap after the last step. */
export function nextWakeAt(state: BridgeState): number {
  const times = [state.lastStepAt + MAX_STEP_GAP_MS, ...linkTimes(state.link), renewAt({ state })];
  for (const job of state.jobs.values()) times.push(...jobTimes(job, state));
  for (const offer of state.offers.values()) times.push(offer.answerBy);
  for (const teardown of state.teardowns.values()) times.push(teardown.retryAt);
  if (state.drain !== null) {
    times.push(state.drain.deadline, hardEndOf(state.drain));
    if (state.drain.finishBy !== null) times.push(state.drain.finishBy);
  }
  return Math.min(...times.filter((at) => at > state.lastStepAt || at === Number.NEGATIVE_INFINITY));
}

function linkTimes(link: Link): number[] {
  switch (link.phase) {
    case 'down':
      return [link.redialAt];
    case 'dialling':
    case 'greeting':
    case 'closing':
      return [link.giveUpAt];
    case 'open':
      return [link.nextBeatAt, link.lastHeardAt + link.deadAfterMs, link.leaveBy];
    case 'halted':
      return [];
  }
}

function jobTimes(job: Job, state: BridgeState): number[] {
  const times = [job.leaseUntil];
  if (job.ending === null) times.push(overdueAt(job));
  else if (job.ending.sent === null) times.push(job.ending.sendBy);
  if (job.op !== null) {
    times.push(job.op.backstopAt);
    if (job.op.pending !== null) times.push(job.op.progressSentAt + PROGRESS_INTERVAL_MS);
  }
  if (state.drain !== null) times.push(Math.max(job.lastOpAt, state.drain.since) + state.settings.drainIdleMs);
  return times;
}
