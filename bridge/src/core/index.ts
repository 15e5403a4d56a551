/** The bridge's decisions, pure: state, input, time and one random number go in; state, records and effects come out. */
export * from './capabilities.js';
export { initialState, type Restored } from './initial.js';
export type { Input, OpOutcome } from './inputs.js';
export { LEASE_MS } from './leases.js';
export { backoffMs, REDIAL, verdictOf } from './redial.js';
export * from './state.js';
export { type StatusName, type StatusView, statusOf } from './status.js';
export { MAX_STEP_GAP_MS, type Step, step } from './step.js';
export type { Effect, JournalRecord, LogFields } from './turn.js';
export { nextWakeAt } from './wake.js';
