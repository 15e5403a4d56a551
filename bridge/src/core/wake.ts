/** When the core wants to be called again although nothing happened. */

import { hardEndOf, renewAt } from './draining.js';
import { overdueAt } from './endings.js';
import { PROGRESS_INTERVAL_MS } from './ops.js';
import type { BridgeState, Job, Link } from './state.js';
import { MAX_STEP_GAP_MS } from './step.js';

/** Tells a time at which something is due. */
type Consider = (at: number) => void;

/** The earliest time at which something is due; never later than the longest step gap after the last step. */
export function nextWakeAt(state: BridgeState): number {
  const { lastStepAt } = state;
  let wakeAt = lastStepAt + MAX_STEP_GAP_MS;
  const consider: Consider = (at) => {
    if (at < wakeAt && (at > lastStepAt || at === Number.NEGATIVE_INFINITY)) wakeAt = at;
  };
  considerLink(state.link, consider);
  consider(renewAt({ state }));
  for (const job of state.jobs.values()) considerJob(job, state, consider);
  for (const offer of state.offers.values()) consider(offer.answerBy);
  for (const teardown of state.teardowns.values()) consider(teardown.retryAt);
  if (state.drain !== null) {
    consider(state.drain.deadline);
    consider(hardEndOf(state.drain));
    if (state.drain.finishBy !== null) consider(state.drain.finishBy);
  }
  return wakeAt;
}

function considerLink(link: Link, consider: Consider): void {
  switch (link.phase) {
    case 'down':
      consider(link.redialAt);
      return;
    case 'dialling':
    case 'greeting':
    case 'closing':
      consider(link.giveUpAt);
      return;
    case 'open':
      consider(link.nextBeatAt);
      consider(link.lastHeardAt + link.deadAfterMs);
      consider(link.leaveBy);
      return;
    case 'halted':
      return;
  }
}

function considerJob(job: Job, state: BridgeState, consider: Consider): void {
  consider(job.leaseUntil);
  if (job.ending === null) consider(overdueAt(job));
  else if (job.ending.sent === null) consider(job.ending.sendBy);
  if (job.op !== null) {
    consider(job.op.backstopAt);
    if (job.op.pending !== null) consider(job.op.progressSentAt + PROGRESS_INTERVAL_MS);
  }
  if (state.drain !== null) consider(Math.max(job.lastOpAt, state.drain.since) + state.settings.drainIdleMs);
}
