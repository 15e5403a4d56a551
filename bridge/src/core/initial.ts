/** The state a process starts with: nothing, or the jobs its predecessor held. */
import { NO_CAPABILITIES } from './capabilities.js';
import type { BridgeState, Job, Settings } from './state.js';

/** The broker has this long to show its executors before the first dial, so that hello tells them. */
const FIRST_DIAL_MS = 3_000;

/** What the bridge's own journal and the control file say at the start. Jobs whose lease ended are dropped by the first step. */
export type Restored = { readonly jobs: readonly Job[]; readonly paused: boolean };

/**
 * See the head of the file. What ran in a restored session is known only when the gateway asks again, so its idle time counts from now: an op that has run for
 * longer than the idle limit must not look like idleness.
 */
export function initialState(settings: Settings, restored: Restored, now: number): BridgeState {
  return {
    settings,
    startedAt: now,
    lastStepAt: now,
    link: { phase: 'down', redialAt: now + FIRST_DIAL_MS },
    generation: 0,
    attempt: 0,
    skewMs: null,
    supersededAt: [],
    trouble: null,
    broker: 'absent',
    capabilities: NO_CAPABILITIES,
    capabilitiesSince: now,
    paused: restored.paused,
    drain: null,
    ended: false,
    jobs: new Map(restored.jobs.map((job) => [job.jobId, { ...job, lastOpAt: now }])),
    offers: new Map(),
    teardowns: new Map(),
    messages: 0,
  };
}
