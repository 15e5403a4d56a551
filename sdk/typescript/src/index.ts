/** The public surface of @reelhost/sdk, listed by hand. */
export {
  type Inspectable,
  isJobId,
  type JsonObject,
  type JsonValue,
  type ProgressReport,
  RawJson,
  raw,
  redactLine,
  submissionJobId,
} from '@reelhost/protocol';
export { BrokerClient, type ClientOptions, type InspectQuery, type SessionRequest } from './client.js';
export type { EnqueueRequest, ScheduleRequest } from './client-requests.js';
export type {
  JobInfo,
  JobOutcome,
  OutcomeError,
  RuntimeInfo,
  ScheduleInfo,
  SessionInfo,
} from './client-views.js';
export {
  BrokerError,
  type BrokerErrorOptions,
  type LocalErrorCode,
  TaskError,
  type TaskErrorOptions,
} from './errors.js';
export {
  createExecutor,
  type EventListener,
  type Executor,
  type ExecutorOptions,
  type ExecutorState,
} from './executor.js';
export type { ConnectionTerms } from './hello-reply.js';
export type { CancelReply, JobHandle } from './job-handle.js';
export { DEFAULT_STOP_GRACE_MS } from './local-executor.js';
export { InvalidSocketPath, resolveSocketPath, type SocketPathHost } from './socket-path.js';
export type { TaskContext, TaskDefinition, TaskHandler } from './task-definition.js';
export { Workspace, type WorkspaceEntry } from './workspace.js';
