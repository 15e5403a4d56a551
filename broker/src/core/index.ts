/** What the adapters use of the core. */
export { type Core, type Counters, type Degraded, type Identity, newCore } from './core.js';
export {
  connectionClosed,
  endTurn,
  nextWakeMs,
  peerConnected,
  type ReceivedRequest,
  requestReceived,
  timePassed,
} from './engine.js';
export { framesTaken } from './frame-watch.js';
export { JOB_STATES, type Job, type JobError, type JobState, type RawJson } from './job.js';
export { type Execution, type Peer, reservationOf, type StoredExecution } from './peer.js';
export { restore, type StoredState } from './recovery.js';
export { reportUnusable } from './reports.js';
export { newSchedule, type Schedule, type ScheduleDefinition } from './schedule.js';
export { putSecrets } from './secret-places.js';
export type { Session, SessionState } from './session.js';
export { directoryRemoved } from './session-closing.js';
export { directoryFailed, newSession } from './sessions.js';
export {
  DEFAULT_SETTINGS,
  LIMIT_KEYS,
  LIMITS,
  type LimitKey,
  type LimitRow,
  type LimitUnit,
  limitName,
  resumableExecutions,
  type Settings,
  settingsOf,
} from './settings.js';
export {
  type Archive,
  type Effect,
  type Entropy,
  isNothing,
  type JournalFacts,
  type Moment,
  noRecords,
  type Records,
} from './turn.js';
