/**
 * The executions of an executor at work: handlers run here, and what they lead to is sent while there is a connection. Who runs, who waits
 * and what is owed is decided by core/execution-table.ts.
 */
import { type Execute, encode, type JsonObject, type ProgressReport, RawJson } from '@reelhost/protocol';
import { type ExecutionEffect, type ExecutionOrder, ExecutionTable, type Report } from './core/execution-table.js';
import type { EventListener } from './executor.js';
import { NO_LIMITS_YET, type ReportLimits, Run } from './run.js';
import type { TaskDefinition } from './task-definition.js';

/** How runs reach the broker. */
export interface RunsOutlet {
  /** Whether reports may be sent: only after the broker has said what it still wants. */
  mayReport(): boolean;
  requestId(): string;
  send(text: string): void;
}

/** All executions of one executor. */
export class ExecutorRuns {
  readonly table: ExecutionTable;
  /** The tasks that are served now. */
  readonly tasks = new Map<string, TaskDefinition>();
  /** What the present connection allows. */
  limits: ReportLimits = NO_LIMITS_YET;
  /** Called after every change of the table. */
  onChange: (() => void) | undefined;
  readonly #orders = new Map<string, Execute>();
  readonly #runs = new Map<string, Run>();
  /** Requests whose answer settles a report, by request id. */
  readonly #reports = new Map<string, string>();
  readonly #outlet: RunsOutlet;
  readonly #event: EventListener;

  constructor(capacity: number, outlet: RunsOutlet, event: EventListener) {
    this.table = new ExecutionTable(capacity);
    this.#outlet = outlet;
    this.#event = event;
  }

  /** `execute` came. */
  ordered(execute: Execute): void {
    const order: ExecutionOrder = {
      executionId: execute.execution_id,
      reservationId: execute.reservation_id,
      jobId: execute.job_id,
      task: execute.task,
    };
    if (!this.tasks.has(execute.task)) {
      this.perform(this.table.refused(order, notServed('this executor does not serve the task')));
      return;
    }
    if (!this.#orders.has(order.executionId)) this.#orders.set(order.executionId, execute);
    this.perform(this.table.ordered(order));
  }

  /** A reply came; answers whether it was one to a report, which is settled by it, whatever it says. */
  answered(requestId: string, refusal: string | undefined): boolean {
    const executionId = this.#reports.get(requestId);
    if (executionId === undefined) return false;
    this.#reports.delete(requestId);
    if (refusal !== undefined) this.#event('report.refused', { executionId, code: refusal });
    this.perform(this.table.settled(executionId));
    return true;
  }

  /** The connection is cut: no reply will come any more. */
  disconnected(): void {
    this.#reports.clear();
  }

  /** Carries out what the table decided. */
  perform(effects: readonly ExecutionEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case 'run':
          this.#run(effect.executionId);
          break;
        case 'sendStarted':
          // Withdrawn while it waited for a slot: it will be refused, and what never started is given to another executor.
          if (!this.#runs.has(effect.execution.executionId) && !this.tasks.has(effect.execution.task)) break;
          this.#outlet.send(encode('started', this.#outlet.requestId(), ids(effect.execution)));
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
    this.onChange?.();
  }

  #run(executionId: string): void {
    const order = this.#orders.get(executionId);
    const definition = order === undefined ? undefined : this.tasks.get(order.task);
    if (order === undefined || definition === undefined) {
      // Withdrawn while it waited for a slot. Not from inside the table's own step.
      queueMicrotask(() => this.perform(this.table.finished(executionId, notServed('the task was withdrawn'))));
      return;
    }
    const run = new Run(order, {
      limits: () => this.limits,
      progress: (report) => this.#sendProgress(order, report),
      ended: (report) => {
        this.#runs.delete(executionId);
        this.#event('job.finished', { jobId: order.job_id, task: order.task, outcome: report.type });
        this.perform(this.table.finished(executionId, report));
      },
    });
    this.#runs.set(executionId, run);
    this.#event('job.started', { jobId: order.job_id, task: order.task, attempt: order.attempt ?? 1 });
    void run.start(definition);
  }

  #sendReport(execution: ExecutionOrder, report: Report): void {
    if (!this.#outlet.mayReport()) return;
    const id = this.#outlet.requestId();
    this.#reports.set(id, execution.executionId);
    const content =
      report.type === 'succeeded'
        ? { result: RawJson.trusted(report.result) }
        : { error: RawJson.trusted(report.error) };
    this.#outlet.send(encode(report.type, id, { ...ids(execution), ...content }));
  }

  #sendProgress(order: Execute, report: ProgressReport): void {
    if (!this.limits.extension || !this.#outlet.mayReport()) return;
    const { reservation_id, execution_id } = order;
    const progress = report as unknown as JsonObject;
    this.#outlet.send(encode('progress', this.#outlet.requestId(), { reservation_id, execution_id, progress }));
  }
}

function notServed(message: string): Report {
  return { type: 'failed', error: JSON.stringify({ type: 'TaskNotRegistered', message }) };
}

function ids(execution: ExecutionOrder): { reservation_id: string; execution_id: string; job_id: string } {
  return { reservation_id: execution.reservationId, execution_id: execution.executionId, job_id: execution.jobId };
}
