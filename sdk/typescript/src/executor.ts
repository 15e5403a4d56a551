/**
 * An executor: a process that registers tasks with the broker of its host and runs them.
 *
 * Order for one job: execute → `started` → the handler → `succeeded` or `failed`, kept and sent again until the broker has accepted
 * it. Bookkeeping is in core/execution-table.ts, the connection in link.ts; this file puts the two and the runs together.
 */
import {
  type Envelope,
  EXTENSION,
  type Execute,
  encode,
  VALUE_LIMITS,
  VALUE_LIMITS_EXTENSION,
  type JsonObject,
  MAX_RESUME_ENTRIES,
  MAX_TASKS_PER_MESSAGE,
  type ProgressReport,
  RawJson,
  readPush,
  readWireError,
} from '@reelhost/protocol';
import { type ExecutionEffect, type ExecutionOrder, ExecutionTable, type Report } from './core/execution-table.js';
import { Deferred } from './deferred.js';
import { BrokerError } from './errors.js';
import { readHelloOk } from './hello-reply.js';
import { Link, type LinkOwner } from './link.js';
import { NO_LIMITS_YET, type ReportLimits, Run } from './run.js';
import { resolveSocketPath } from './socket-path.js';
import { type TaskDefinition, type TaskHandler, taskDeclaration, taskDefinition } from './task-definition.js';

/** What happens inside an executor or client, for its log. `fields` never hold arguments or results. */
export type EventListener = (event: string, fields: Readonly<Record<string, unknown>>) => void;

/** How an executor is set up. */
export interface ExecutorOptions {
  /** Default: found as `resolveSocketPath` says. */
  readonly socketPath?: string | undefined;
  /** Default: `worker-<pid>`. A stable name lets pinned sessions find their runtime again. */
  readonly runtimeId?: string | undefined;
  /** Jobs at the same time; default 1. */
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

/** How long running jobs may go on when an executor is stopped, in milliseconds. */
export const DEFAULT_STOP_GRACE_MS = 10_000;
/** After their abort signal handlers have this long to end before the connection is given up, in milliseconds. */
const ABORT_GRACE_MS = 10_000;
/** Then the broker has this long to accept the reports that are owed, in milliseconds; less when the whole grace is less. */
const REPORT_GRACE_MS = 2_000;
/** Refusals of hello that may pass. */
const PASSING: ReadonlySet<string> = new Set([
  'unavailable',
  'connection_closed',
  'capacity',
  'disk_full',
  'request_timeout',
]);

/** Makes an executor; nothing happens before `start`. @throws InvalidSocketPath */
export function createExecutor(options: ExecutorOptions): Executor {
  return new LocalExecutor(options);
}

class LocalExecutor implements Executor, LinkOwner {
  state: ExecutorState = 'idle';
  readonly #options: ExecutorOptions;
  readonly #tasks = new Map<string, TaskDefinition>();
  readonly #table: ExecutionTable;
  readonly #orders = new Map<string, Execute>();
  readonly #runs = new Map<string, Run>();
  /** Requests whose answer settles a report, by request id. */
  readonly #reports = new Map<string, string>();
  /** Registrations that must be answered before the link is up. */
  readonly #preparing = new Set<string>();
  readonly #link: Link;
  readonly #started = new Deferred<void>();
  readonly #finished = new Deferred<void>();
  #limits: ReportLimits = NO_LIMITS_YET;
  #wanted: ReadonlySet<string> | undefined;
  #helloId = '';
  #lastRequest = 0;
  #changed: (() => void) | undefined;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#table = new ExecutionTable(options.maxConcurrency ?? 1);
    for (const [key, task] of Object.entries(options.tasks)) this.#tasks.set(key, taskDefinition(task));
    this.#link = new Link(resolveSocketPath(options.socketPath), this);
  }

  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  start(): Promise<void> {
    if (this.state === 'idle') {
      this.state = 'connecting';
      this.#link.input({ type: 'started' });
    }
    return this.#started.promise;
  }

  async stop(options: { readonly graceMs?: number | undefined } = {}): Promise<void> {
    if (this.state === 'stopped' || this.state === 'stopping') return this.finished.catch(() => undefined);
    const withdrawn = [...this.#tasks.keys()];
    this.state = 'stopping';
    this.#tasks.clear();
    if (this.#link.phase === 'up') this.#sendTaskKeys('unregister_tasks', withdrawn);
    const graceMs = options.graceMs ?? DEFAULT_STOP_GRACE_MS;
    await this.#until(() => this.#table.unfinished === 0, graceMs);
    this.#perform(this.#table.abandon('stopping'));
    await this.#until(() => this.#table.unfinished === 0, ABORT_GRACE_MS);
    await this.#until(() => this.#table.size === 0, Math.min(graceMs, REPORT_GRACE_MS));
    this.#link.stop();
  }

  setTask(key: string, task: TaskHandler | TaskDefinition): void {
    if (this.state === 'stopping' || this.state === 'stopped') return;
    this.#tasks.set(key, taskDefinition(task));
    if (this.#link.phase === 'preparing' || this.#link.phase === 'up') this.#sendTaskKeys('register_tasks', [key]);
  }

  removeTask(key: string): void {
    if (!this.#tasks.delete(key)) return;
    if (this.#link.phase === 'preparing' || this.#link.phase === 'up') this.#sendTaskKeys('unregister_tasks', [key]);
  }

  // The link's owner.

  greet(): void {
    const { entries, effects } = this.#table.resume(MAX_RESUME_ENTRIES);
    this.#perform(effects);
    this.#helloId = this.#requestId();
    const { mode, runtimeId, maxConcurrency, software } = this.#options;
    this.#link.send(
      encode('hello', this.#helloId, {
        mode: mode ?? 'worker',
        runtime_id: runtimeId ?? `worker-${process.pid}`,
        max_concurrency: maxConcurrency ?? 1,
        extensions: [EXTENSION],
        pid: process.pid,
        software,
        resume: entries as unknown as JsonObject[],
      }),
    );
  }

  prepare(): void {
    this.#perform(this.#table.resumed(this.#wanted));
    for (const id of this.#sendTaskKeys('register_tasks', [...this.#tasks.keys()])) this.#preparing.add(id);
    if (this.#preparing.size === 0) this.#link.input({ type: 'prepared' });
  }

  up(): void {
    if (this.state === 'connecting') this.state = 'ready';
    this.#event('executor.ready', { extension: this.#limits.extension, tasks: this.#tasks.size });
    this.#started.resolve();
  }

  down(reason: unknown): void {
    if (this.state === 'ready') this.state = 'connecting';
    this.#reports.clear();
    this.#preparing.clear();
    this.#event('executor.disconnected', { reason: reason instanceof Error ? reason.message : String(reason) });
  }

  end(reason: unknown): void {
    this.state = 'stopped';
    this.#changed?.();
    this.#perform(this.#table.abandon('stopping'));
    this.#event('executor.stopped', {});
    if (reason === undefined) {
      this.#started.reject(new BrokerError('client_closed', 'the executor was stopped before it was registered'));
      this.#finished.resolve();
    } else {
      this.#started.reject(reason);
      this.#finished.reject(reason);
    }
  }

  message(envelope: Envelope): void {
    const push = readPush(envelope);
    if (push === undefined) {
      this.#replied(envelope);
      return;
    }
    switch (push.type) {
      case 'execute':
        this.#ordered(push);
        return;
      case 'cancel_execution':
        this.#perform(this.#table.cancelled(push.execution_id, push.reason === 'timeout' ? 'timeout' : 'cancelled'));
        return;
      case 'ping':
        this.#link.send(encode('pong', this.#requestId(), { ping_id: push.ping_id }));
        return;
      case 'job_settled':
      case 'job_progress':
      case 'registry_changed':
        return;
    }
  }

  #replied(envelope: Envelope): void {
    const id = envelope.requestId;
    const failed = envelope.type === 'error';
    if (id === this.#helloId) {
      this.#helloId = '';
      if (failed) this.#refused('hello', envelope);
      else this.#greeted(envelope);
      return;
    }
    const executionId = this.#reports.get(id);
    if (executionId !== undefined) {
      this.#reports.delete(id);
      if (failed) this.#event('report.refused', { executionId, code: readWireError(envelope).code });
      this.#perform(this.#table.settled(executionId));
      return;
    }
    if (this.#preparing.delete(id)) {
      if (failed) this.#refused('register_tasks', envelope);
      else if (this.#preparing.size === 0) this.#link.input({ type: 'prepared' });
    } else if (failed) this.#event('request.refused', { code: readWireError(envelope).code });
  }

  #greeted(envelope: Envelope): void {
    const terms = readHelloOk(envelope);
    this.#limits = { ...terms, json: terms.extension ? VALUE_LIMITS_EXTENSION : VALUE_LIMITS };
    this.#wanted = terms.wanted;
    if (terms.extension) this.#link.allowLargeFrames(terms.maxFrameBytes);
    this.#link.input({ type: 'greeted' });
  }

  #refused(what: string, envelope: Envelope): void {
    const { code, message, reason } = readWireError(envelope);
    const error = new BrokerError(code, `the broker refused ${what}: ${message ?? reason ?? code}`);
    this.#link.input({ type: 'refused', retryable: PASSING.has(code), reason: error });
  }

  #ordered(execute: Execute): void {
    const order: ExecutionOrder = {
      executionId: execute.execution_id,
      reservationId: execute.reservation_id,
      jobId: execute.job_id,
      task: execute.task,
    };
    if (!this.#tasks.has(execute.task)) {
      const error = JSON.stringify({ type: 'TaskNotRegistered', message: 'this executor does not serve the task' });
      this.#perform(this.#table.refused(order, { type: 'failed', error }));
      return;
    }
    if (!this.#orders.has(order.executionId)) this.#orders.set(order.executionId, execute);
    this.#perform(this.#table.ordered(order));
  }

  #perform(effects: readonly ExecutionEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case 'run':
          this.#run(effect.executionId);
          break;
        case 'sendStarted':
          this.#link.send(encode('started', this.#requestId(), ids(effect.execution)));
          break;
        case 'sendReport':
          this.#sendReport(effect.execution, effect.report);
          break;
        case 'abort':
          this.#runs.get(effect.executionId)?.abort(effect.cause);
          break;
        case 'forget':
          this.#runs.delete(effect.executionId);
          this.#orders.delete(effect.executionId);
          break;
      }
    }
    this.#changed?.();
  }

  #run(executionId: string): void {
    const order = this.#orders.get(executionId);
    const definition = order === undefined ? undefined : this.#tasks.get(order.task);
    if (order === undefined || definition === undefined) {
      const error = JSON.stringify({ type: 'TaskNotRegistered', message: 'the task was withdrawn' });
      // Not from inside the table's own step.
      queueMicrotask(() => this.#perform(this.#table.finished(executionId, { type: 'failed', error })));
      return;
    }
    const run = new Run(order, {
      limits: () => this.#limits,
      progress: (report) => this.#sendProgress(order, report),
      ended: (report) => {
        this.#runs.delete(executionId);
        this.#event('job.finished', { jobId: order.job_id, task: order.task, outcome: report.type });
        this.#perform(this.#table.finished(executionId, report));
      },
    });
    this.#runs.set(executionId, run);
    this.#event('job.started', { jobId: order.job_id, task: order.task, attempt: order.attempt ?? 1 });
    void run.start(definition);
  }

  #sendReport(execution: ExecutionOrder, report: Report): void {
    // Before the answer to `resume` nothing may be reported: the broker might not want it.
    if (this.#link.phase !== 'preparing' && this.#link.phase !== 'up') return;
    const id = this.#requestId();
    this.#reports.set(id, execution.executionId);
    const content =
      report.type === 'succeeded'
        ? { result: RawJson.trusted(report.result) }
        : { error: RawJson.trusted(report.error) };
    this.#link.send(encode(report.type, id, { ...ids(execution), ...content }));
  }

  #sendProgress(order: Execute, progress: ProgressReport): void {
    if (!this.#limits.extension || this.#link.phase !== 'up') return;
    const { reservation_id, execution_id } = order;
    this.#link.send(
      encode('progress', this.#requestId(), {
        reservation_id,
        execution_id,
        progress: progress as unknown as JsonObject,
      }),
    );
  }

  /** Sends task keys in as many messages as needed; answers their request ids. */
  #sendTaskKeys(type: 'register_tasks' | 'unregister_tasks', keys: readonly string[]): string[] {
    const sent: string[] = [];
    for (let at = 0; at < keys.length; at += MAX_TASKS_PER_MESSAGE) {
      const tasks = keys.slice(at, at + MAX_TASKS_PER_MESSAGE).sort();
      const declarations: JsonObject = {};
      for (const key of tasks) {
        const task = this.#tasks.get(key);
        if (task !== undefined) declarations[key] = taskDeclaration(task);
      }
      const id = this.#requestId();
      const declare = type === 'register_tasks' && this.#limits.extension;
      this.#link.send(encode(type, id, { tasks, ...(declare ? { declarations } : {}) }));
      sent.push(id);
    }
    return sent;
  }

  #requestId(): string {
    this.#lastRequest += 1;
    return `x${this.#lastRequest}`;
  }

  /** Resolves when `condition` holds, at the latest after `ms`. */
  async #until(condition: () => boolean, ms: number): Promise<void> {
    if (condition() || this.#link.phase === 'ended') return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#changed = () => {
        if (!condition() && this.#link.phase !== 'ended') return;
        clearTimeout(timer);
        resolve();
      };
    });
    this.#changed = undefined;
  }

  #event(event: string, fields: Readonly<Record<string, unknown>>): void {
    this.#options.onEvent?.(event, fields);
  }
}

function ids(execution: ExecutionOrder): { reservation_id: string; execution_id: string; job_id: string } {
  return { reservation_id: execution.reservationId, execution_id: execution.executionId, job_id: execution.jobId };
}
