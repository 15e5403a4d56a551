/**
 * One run of a handler: its abort signal, its time limit, its progress, and the report it ends with.
 * It reports exactly once, also when the handler throws something odd or returns what is not JSON.
 */
import {
  checkJson,
  type Execute,
  type JsonLimits,
  type ProgressReport,
  RawJson,
  VALUE_LIMITS_EXTENSION,
} from '@reelhost/protocol';
import { type AbortCause, abortError, type Report } from './core/execution-table.js';
import { toWellFormed } from './core/unicode.js';
import { describeFailure, TaskError } from './errors.js';
import type { TaskContext, TaskDefinition } from './task-definition.js';

/** What the connection allows a report to be. */
export interface ReportLimits {
  readonly extension: boolean;
  readonly maxResultBytes: number;
  readonly maxErrorBytes: number;
  readonly json: JsonLimits;
}

/** How a run reaches its executor. */
export interface RunHooks {
  limits(): ReportLimits;
  progress(report: ProgressReport): void;
  ended(report: Report): void;
}

/** Progress is sent at most this often, in milliseconds. */
const PROGRESS_INTERVAL_MS = 100;

const REASONS: Readonly<Record<AbortCause, readonly [string, string]>> = {
  cancelled: ['cancelled', 'the job was cancelled'],
  timeout: ['timeout', 'the job ran longer than its timeout'],
  not_wanted: ['cancelled', 'nobody waits for this job any more'],
  stopping: ['cancelled', 'the executor is stopping'],
};

/** A handler at work. */
export class Run {
  readonly #controller = new AbortController();
  readonly #order: Execute;
  readonly #hooks: RunHooks;
  #cause: AbortCause | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #progressTimer: NodeJS.Timeout | undefined;
  #progress: ProgressReport | undefined;
  #ended = false;

  constructor(order: Execute, hooks: RunHooks) {
    this.#order = order;
    this.#hooks = hooks;
  }

  /** Runs the handler to its end. */
  async start(definition: TaskDefinition): Promise<void> {
    this.#deadline = setTimeout(() => this.abort('timeout'), Math.min(this.#order.timeout_ms, 2 ** 31 - 1));
    let report: Report;
    try {
      const args = this.#order.args.value();
      if (typeof args !== 'object' || args === null || Array.isArray(args)) {
        throw new TaskError('invalid_args', 'args is not an object');
      }
      report = this.#success(await definition.handler(args, this.#context()));
    } catch (error) {
      report = this.#failure(error);
    }
    clearTimeout(this.#deadline);
    this.#flushProgress();
    clearTimeout(this.#progressTimer);
    this.#ended = true;
    this.#hooks.ended(report);
  }

  /** Asks the handler to stop; the first cause counts. */
  abort(cause: AbortCause): void {
    if (this.#cause !== undefined || this.#ended) return;
    this.#cause = cause;
    const [code, message] = REASONS[cause];
    this.#controller.abort(new TaskError(code, message));
  }

  #context(): TaskContext {
    const order = this.#order;
    return {
      jobId: order.job_id,
      executionId: order.execution_id,
      task: order.task,
      attempt: order.attempt ?? 1,
      ...(order.session_id === undefined ? {} : { sessionId: order.session_id }),
      timeoutMs: order.timeout_ms,
      signal: this.#controller.signal,
      progress: (report) => this.#noteProgress(report),
      rawArgs: order.args.text,
    };
  }

  #success(value: unknown): Report {
    const limits = this.#hooks.limits();
    const text = value instanceof RawJson ? value.text : (JSON.stringify(value) ?? 'null');
    // A half surrogate pair is the one thing JSON.stringify writes that not every peer can read.
    const result = !(value instanceof RawJson) && /\\ud[89a-f]/i.test(text) ? JSON.stringify(value, wellFormed) : text;
    const bytes = Buffer.byteLength(result);
    if (bytes > limits.maxResultBytes) {
      throw new TaskError('result_too_large', `the result has ${bytes} bytes, allowed are ${limits.maxResultBytes}`);
    }
    const excess = checkJson(result, limits.json);
    if (excess !== undefined) throw new TaskError('result_invalid', `the result is ${excess.replaceAll('_', ' ')}`);
    return { type: 'succeeded', result };
  }

  #failure(error: unknown): Report {
    const limits = this.#hooks.limits();
    if (this.#cause !== undefined) {
      const message = error instanceof Error ? error.message : REASONS[this.#cause][1];
      return { type: 'failed', error: abortError(this.#cause, message.slice(0, 500)) };
    }
    return { type: 'failed', error: describeFailure(error, limits.extension, limits.maxErrorBytes) };
  }

  #noteProgress(report: ProgressReport): void {
    if (this.#ended) return;
    const { stage, percent, detail } = report;
    this.#progress = {
      stage: String(stage).slice(0, 200),
      ...(percent === undefined || Number.isNaN(percent) ? {} : { percent: Math.min(100, Math.max(0, percent)) }),
      ...(detail === undefined ? {} : { detail: String(detail).slice(0, 1_000) }),
    };
    if (this.#progressTimer === undefined) this.#flushProgress();
  }

  #flushProgress(): void {
    const report = this.#progress;
    this.#progressTimer = undefined;
    if (report === undefined) return;
    this.#progress = undefined;
    this.#hooks.progress(report);
    this.#progressTimer = setTimeout(() => this.#flushProgress(), PROGRESS_INTERVAL_MS);
  }
}

function wellFormed(_key: string, value: unknown): unknown {
  return typeof value === 'string' ? toWellFormed(value) : value;
}

/** The limits before a connection has told its own. */
export const NO_LIMITS_YET: ReportLimits = {
  extension: true,
  maxResultBytes: Number.POSITIVE_INFINITY,
  maxErrorBytes: 8_192,
  json: VALUE_LIMITS_EXTENSION,
};
