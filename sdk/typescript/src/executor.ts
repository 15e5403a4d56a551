/** What an executor is to the program that makes one. How it works is in local-executor.ts. */
import { LocalExecutor } from './local-executor.js';
import type { TaskDefinition, TaskHandler } from './task-definition.js';

/** What happens inside an executor or client, for its log. `fields` never hold arguments or results. */
export type EventListener = (event: string, fields: Readonly<Record<string, unknown>>) => void;

/** How an executor is set up. */
export interface ExecutorOptions {
  /** Default: found as `resolveSocketPath` says. */
  readonly socketPath?: string | undefined;
  /**
   * Default: `worker-<pid>`. What runs, and a pinned session, is found again under this name when the connection was lost, by this process only: a new
   * process with the same name begins with nothing.
   */
  readonly runtimeId?: string | undefined;
  /** Jobs at the same time; default 1. A broker of the extension gives at most 1,024, so that all of them can be resumed; more need more executors. */
  readonly maxConcurrency?: number | undefined;
  readonly mode?: 'worker' | 'embedded' | undefined;
  /** Name and version for `status`. */
  readonly software?: string | undefined;
  readonly onEvent?: EventListener | undefined;
  readonly tasks: Readonly<Record<string, TaskHandler | TaskDefinition>>;
}

/** `idle` before `start`, `connecting` while there is no registration, `ready`, `stopping`, `stopped`. */
export type ExecutorState = 'idle' | 'connecting' | 'ready' | 'stopping' | 'stopped';

/** A process that runs tasks for a broker. */
export interface Executor {
  readonly state: ExecutorState;
  /** Resolves when the executor is stopped; rejects when the broker refuses it for good. */
  readonly finished: Promise<void>;
  /** Connects, and resolves after the first registration. It waits for a broker that is not there yet. */
  start(): Promise<void>;
  /** Takes no more jobs, gives running ones `graceMs` (default 10,000) and then their abort signal, delivers reports, disconnects. */
  stop(options?: { readonly graceMs?: number | undefined }): Promise<void>;
  /** Adds or replaces a task; jobs already running are not touched. */
  setTask(key: string, task: TaskHandler | TaskDefinition): void;
  /** Withdraws a task; jobs already running are not touched. */
  removeTask(key: string): void;
}

/** Makes an executor; nothing happens before `start`. @throws InvalidSocketPath */
export function createExecutor(options: ExecutorOptions): Executor {
  return new LocalExecutor(options);
}
