/** Every limit and duration of the broker's decisions: one name, one default. Times in ms, sizes in bytes. */
export interface Settings {
  /** Time limit of a job that names none. */
  readonly defaultTimeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly maxRetries: number;
  /** Jobs of one queue that may be executing at once; a session's jobs are limited by their session instead. */
  readonly queueConcurrency: number;
  /** Overrides of `queueConcurrency` by queue name. */
  readonly queues: Readonly<Record<string, number>>;
  /** Interruptions after which a job is discarded as `interrupted_too_often`. */
  readonly maxInterruptions: number;
  /** How long an execution waits for its executor to come back. */
  readonly resumeWindowMs: number;
  /** How long a job waits for secrets that a restart has lost. */
  readonly secretsWindowMs: number;
  /** After the time limit: how long an executor of the extension has to report before the job is settled as `timeout`. */
  readonly timeoutGraceMs: number;
  readonly sessionGraceMs: number;
  readonly maxSessionGraceMs: number;
  readonly maxCancelWaitMs: number;
  readonly helloTimeoutMs: number;
  readonly progressIntervalMs: number;
  readonly registryIntervalMs: number;
  /** Arguments a plain Tay connection may send. */
  readonly maxArgsBytes: number;
  readonly extensionMaxArgsBytes: number;
  readonly maxResultBytes: number;
  readonly maxErrorBytes: number;
  readonly extensionMaxFrameBytes: number;
  readonly extensionMaxResultBytes: number;
  readonly extensionMaxErrorBytes: number;
  readonly maxFrameBytes: number;
  readonly maxTasksPerMessage: number;
  readonly maxOutstanding: number;
  readonly maxSessions: number;
  readonly maxSchedules: number;
  /** Cancelled schedules that are remembered. */
  readonly endedSchedules: number;
  /** Task keys that one connection may have registered at a time. */
  readonly maxTasksPerPeer: number;
  /** Unfinished jobs the broker holds at once. */
  readonly maxLiveJobs: number;
  /** Results kept per session; older jobs leave their id only. */
  readonly sessionResults: number;
  /** Secrets of all unfinished jobs together; they are in memory only. */
  readonly maxSecretsHeld: number;
  /** Finished jobs held in memory so that a poller needs no disk. */
  readonly recentJobs: number;
  readonly recentBytes: number;
  /** Argument bytes of waiting jobs held in memory; the rest is read from the journal when it is needed. */
  readonly residentArgsBytes: number;
}

/** The defaults: Tay's where Tay has one (local executor protocol v1, limits), ours elsewhere. */
export const DEFAULT_SETTINGS: Settings = {
  defaultTimeoutMs: 30_000,
  maxTimeoutMs: 86_400_000,
  maxRetries: 65_534,
  queueConcurrency: 10,
  queues: {},
  maxInterruptions: 3,
  resumeWindowMs: 15_000,
  secretsWindowMs: 60_000,
  timeoutGraceMs: 10_000,
  sessionGraceMs: 8_000,
  maxSessionGraceMs: 20_000,
  maxCancelWaitMs: 20_000,
  helloTimeoutMs: 10_000,
  progressIntervalMs: 100,
  registryIntervalMs: 250,
  maxArgsBytes: 262_144,
  extensionMaxArgsBytes: 4_259_840,
  maxResultBytes: 65_536,
  maxErrorBytes: 8_192,
  extensionMaxFrameBytes: 8_388_608,
  extensionMaxResultBytes: 4_259_840,
  extensionMaxErrorBytes: 65_536,
  maxFrameBytes: 1_048_576,
  maxTasksPerMessage: 256,
  maxOutstanding: 64,
  maxSessions: 4_096,
  maxSchedules: 10_000,
  endedSchedules: 1_000,
  maxTasksPerPeer: 4_096,
  maxLiveJobs: 200_000,
  sessionResults: 256,
  maxSecretsHeld: 268_435_456,
  recentJobs: 256,
  recentBytes: 33_554_432,
  residentArgsBytes: 67_108_864,
};
