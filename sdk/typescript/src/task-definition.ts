/** What a task is to an executor: its handler, and what is declared about it to the broker. */
import type { JsonObject, JsonValue, ProgressReport, RawJson } from '@reelhost/protocol';

/** What a handler knows about its job. */
export interface TaskContext {
  readonly jobId: string;
  readonly executionId: string;
  readonly task: string;
  /** From 1 on; always 1 where the broker does not say. */
  readonly attempt: number;
  readonly sessionId?: string;
  readonly timeoutMs: number;
  /** Fires when the work must stop; the reason is a `TaskError` with code `cancelled` or `timeout`. */
  readonly signal: AbortSignal;
  /** Tells watchers how far the job is; the latest counts, at most ten a second are sent. */
  progress(report: ProgressReport): void;
  /** The arguments as they came, e.g. for integers beyond 2^53. */
  readonly rawArgs: string;
}

/** Runs one job. What it returns is the result (undefined becomes null, `RawJson` is sent as it is); what it throws is the failure. */
export type TaskHandler = (
  args: JsonObject,
  context: TaskContext,
) => JsonValue | RawJson | undefined | Promise<JsonValue | RawJson | undefined>;

/** A task and what is declared about it. */
export interface TaskDefinition {
  readonly handler: TaskHandler;
  /** Free facts about this executor's task, at most 16 KiB of JSON. */
  readonly attributes?: JsonObject;
  /** `host`: all state of a session is in its directory. Default `pinned`. */
  readonly sessions?: 'host' | 'pinned';
  /** Every job of this task may be run again after an interruption. */
  readonly idempotent?: boolean;
  /** The values of `args.op` whose jobs may be run again. */
  readonly idempotentOps?: readonly string[];
}

/** A handler as a definition. */
export function taskDefinition(task: TaskHandler | TaskDefinition): TaskDefinition {
  return typeof task === 'function' ? { handler: task } : task;
}

/** The entry of `register_tasks.declarations`. */
export function taskDeclaration(task: TaskDefinition): JsonObject {
  return {
    attributes: task.attributes ?? {},
    sessions: task.sessions ?? 'pinned',
    idempotent: task.idempotent ?? false,
    idempotent_ops: [...(task.idempotentOps ?? [])],
  };
}
