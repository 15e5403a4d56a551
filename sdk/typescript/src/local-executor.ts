/**
 * An executor on its connection: registers tasks, receives orders, stops in order.
 *
 * Order for one job: execute → `started` → the handler → `succeeded` or `failed`, kept and sent again until the broker has accepted
 * it. Order for one connection: hello with what is still running or owed → what the broker does not want is stopped → reports that
 * are owed → registrations → ready. Runs are in executor-runs.ts, the socket in link.ts.
 */
import {
  type Envelope,
  EXTENSION,
  encode,
  type JsonObject,
  MAX_RESUME_ENTRIES,
  readPush,
  readWireError,
  VALUE_LIMITS,
  VALUE_LIMITS_EXTENSION,
} from '@reelhost/protocol';
import { Deferred } from './deferred.js';
import { BrokerError, PASSING_REFUSALS } from './errors.js';
import type { EventListener, Executor, ExecutorOptions, ExecutorState } from './executor.js';
import { ExecutorRuns } from './executor-runs.js';
import { IDLE_TERMS, readHelloOk } from './hello-reply.js';
import { Link, type LinkOwner } from './link.js';
import { resolveSocketPath } from './socket-path.js';
import { type TaskDefinition, type TaskHandler, taskDeclaration, taskDefinition } from './task-definition.js';

/** How long running jobs may go on when an executor is stopped, in milliseconds. */
export const DEFAULT_STOP_GRACE_MS = 10_000;
/** After their abort signal handlers have this long to end before the connection is given up, in milliseconds. */
const ABORT_GRACE_MS = 10_000;
/** Then the broker has this long to accept the reports that are owed, in milliseconds; less when the whole grace is less. */
const REPORT_GRACE_MS = 2_000;

/** Executors made by this process: two of them must not share a runtime id, or the broker takes one's work for the other's forgotten work. */
let executors = 0;

/** The executor behind `createExecutor`. */
export class LocalExecutor implements Executor, LinkOwner {
  state: ExecutorState = 'idle';
  readonly #options: ExecutorOptions;
  readonly #ownRuntimeId: string;
  readonly #event: EventListener;
  readonly #runs: ExecutorRuns;
  /** Registrations that must be answered before the link is up. */
  readonly #preparing = new Set<string>();
  readonly #link: Link;
  readonly #started = new Deferred<void>();
  readonly #finished = new Deferred<void>();
  #wanted: ReadonlySet<string> | undefined;
  #tasksPerMessage = IDLE_TERMS.maxTasksPerMessage;
  #helloId = '';
  #lastRequest = 0;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    executors += 1;
    this.#ownRuntimeId = executors === 1 ? `worker-${process.pid}` : `worker-${process.pid}-${executors}`;
    this.#event = options.onEvent ?? (() => undefined);
    this.#link = new Link(resolveSocketPath(options.socketPath), this);
    const outlet = {
      mayReport: () => this.#isGreeted(),
      requestId: () => this.#requestId(),
      send: (text: string) => this.#link.send(text),
    };
    this.#runs = new ExecutorRuns(options.maxConcurrency ?? 1, outlet, this.#event);
    for (const [key, task] of Object.entries(options.tasks)) this.#runs.tasks.set(key, taskDefinition(task));
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
    const { table, tasks } = this.#runs;
    const withdrawn = [...tasks.keys()];
    this.state = 'stopping';
    tasks.clear();
    if (this.#link.phase === 'up') this.#sendTaskKeys('unregister_tasks', withdrawn);
    const graceMs = options.graceMs ?? DEFAULT_STOP_GRACE_MS;
    await this.#until(() => table.unfinished === 0, graceMs);
    this.#runs.perform(table.abandon('stopping'));
    await this.#until(() => table.unfinished === 0, ABORT_GRACE_MS);
    await this.#until(() => table.size === 0, Math.min(graceMs, REPORT_GRACE_MS));
    this.#link.stop();
  }

  setTask(key: string, task: TaskHandler | TaskDefinition): void {
    if (this.state === 'stopping' || this.state === 'stopped') return;
    this.#runs.tasks.set(key, taskDefinition(task));
    if (this.#isGreeted()) this.#sendTaskKeys('register_tasks', [key]);
  }

  removeTask(key: string): void {
    if (this.#runs.tasks.delete(key) && this.#isGreeted()) this.#sendTaskKeys('unregister_tasks', [key]);
  }

  // The link's owner.

  greet(): void {
    const { entries, effects } = this.#runs.table.resume(MAX_RESUME_ENTRIES);
    this.#runs.perform(effects);
    this.#helloId = this.#requestId();
    const { mode, runtimeId, maxConcurrency, software } = this.#options;
    const hello = {
      mode: mode ?? 'worker',
      runtime_id: runtimeId ?? this.#ownRuntimeId,
      max_concurrency: maxConcurrency ?? 1,
      extensions: [EXTENSION],
      pid: process.pid,
      software,
      resume: entries as unknown as JsonObject[],
    };
    this.#link.send(encode('hello', this.#helloId, hello));
  }

  prepare(): void {
    this.#runs.perform(this.#runs.table.resumed(this.#wanted));
    for (const id of this.#sendTaskKeys('register_tasks', [...this.#runs.tasks.keys()])) this.#preparing.add(id);
    if (this.#preparing.size === 0) this.#link.input({ type: 'prepared' });
  }

  up(): void {
    if (this.state === 'connecting') this.state = 'ready';
    this.#event('executor.ready', { extension: this.#runs.limits.extension, tasks: this.#runs.tasks.size });
    this.#started.resolve();
  }

  down(reason: unknown): void {
    if (this.state === 'ready') this.state = 'connecting';
    this.#runs.disconnected();
    this.#preparing.clear();
    this.#event('executor.disconnected', { reason: reason instanceof Error ? reason.message : String(reason) });
  }

  end(reason: unknown): void {
    this.state = 'stopped';
    this.#runs.perform(this.#runs.table.abandon('stopping'));
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
        this.#runs.ordered(push);
        return;
      case 'cancel_execution': {
        const cause = push.reason === 'timeout' ? 'timeout' : 'cancelled';
        this.#runs.perform(this.#runs.table.cancelled(push.execution_id, cause));
        return;
      }
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
    const refusal = envelope.type === 'error' ? readWireError(envelope).code : undefined;
    if (id === this.#helloId) {
      this.#helloId = '';
      if (refusal === undefined) this.#greeted(envelope);
      else this.#refused('hello', envelope);
    } else if (this.#runs.answered(id, refusal)) {
      return;
    } else if (this.#preparing.delete(id)) {
      if (refusal !== undefined) this.#refused('register_tasks', envelope);
      else if (this.#preparing.size === 0) this.#link.input({ type: 'prepared' });
    } else if (refusal !== undefined) this.#event('request.refused', { code: refusal });
  }

  #greeted(envelope: Envelope): void {
    const terms = readHelloOk(envelope);
    this.#runs.limits = { ...terms, json: terms.extension ? VALUE_LIMITS_EXTENSION : VALUE_LIMITS };
    this.#wanted = terms.wanted;
    this.#tasksPerMessage = terms.maxTasksPerMessage;
    if (terms.extension) this.#link.allowLargeFrames(terms.maxFrameBytes);
    this.#link.input({ type: 'greeted' });
  }

  #refused(what: string, envelope: Envelope): void {
    const { code, message, reason } = readWireError(envelope);
    const error = new BrokerError(code, `the broker refused ${what}: ${message ?? reason ?? code}`);
    this.#link.input({ type: 'refused', retryable: PASSING_REFUSALS.has(code), reason: error });
  }

  #isGreeted(): boolean {
    return this.#link.phase === 'preparing' || this.#link.phase === 'up';
  }

  /** Sends task keys in as many messages as needed; answers their request ids. */
  #sendTaskKeys(type: 'register_tasks' | 'unregister_tasks', keys: readonly string[]): string[] {
    const sent: string[] = [];
    const declare = type === 'register_tasks' && this.#runs.limits.extension;
    const most = this.#tasksPerMessage;
    for (let at = 0; at < keys.length; at += most) {
      const tasks = keys.slice(at, at + most).sort();
      const declarations: JsonObject = {};
      for (const key of tasks) {
        const task = this.#runs.tasks.get(key);
        if (task !== undefined) declarations[key] = taskDeclaration(task);
      }
      const id = this.#requestId();
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
    const over = (): boolean => condition() || this.#link.phase === 'ended';
    if (over()) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#runs.onChange = () => {
        if (!over()) return;
        clearTimeout(timer);
        resolve();
      };
    });
    this.#runs.onChange = undefined;
  }
}
