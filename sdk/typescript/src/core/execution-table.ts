/**
 * What an executor runs and what it owes, as pure bookkeeping.
 *
 * An execution is queued (no free slot yet), running, or finished with a report that the broker has not accepted. A report is
 * kept until `accepted` or an `error` answers it, over any number of connections; after a cut the broker is told in `hello.resume` and
 * says what it still wants. A broker without the extension cannot say so: there everything of the lost connection is dropped,
 * because it will be run again.
 * It must never run one execution id twice.
 */

/** An order to run a task. */
export interface ExecutionOrder {
  readonly executionId: string;
  readonly reservationId: string;
  readonly jobId: string;
  readonly task: string;
}

/** What is reported about a finished execution: the message type and its one field as JSON text. */
export type Report =
  | { readonly type: 'succeeded'; readonly result: string }
  | { readonly type: 'failed'; readonly error: string };

/** What the driver must do, in order. */
export type ExecutionEffect =
  | { readonly type: 'run'; readonly executionId: string }
  | { readonly type: 'sendStarted'; readonly execution: ExecutionOrder }
  | { readonly type: 'sendReport'; readonly execution: ExecutionOrder; readonly report: Report }
  | { readonly type: 'abort'; readonly executionId: string; readonly cause: AbortCause }
  | { readonly type: 'forget'; readonly executionId: string };

/** Why a run is stopped. `not_wanted`: nobody waits for its report any more; `stopping`: the executor itself ends. */
export type AbortCause = 'cancelled' | 'timeout' | 'not_wanted' | 'stopping';

/** The `failed.error` of a run that ended because it was stopped, as JSON text. */
export function abortError(cause: AbortCause, message: string): string {
  // An executor that stops is the host's affair, not the producer's wish: the same work may succeed elsewhere.
  if (cause === 'stopping') return JSON.stringify({ type: 'executor_lost', message, retryable: true });
  return JSON.stringify({ type: cause === 'timeout' ? 'timeout' : 'cancelled', message, cancelled: true });
}

interface Entry {
  readonly order: ExecutionOrder;
  state: 'queued' | 'running' | 'finished';
  report: Report | undefined;
  /** Nobody wants the report: it is dropped when the run ends. */
  orphaned: boolean;
}

/** An entry of `hello.resume`. */
export interface ResumeEntry {
  readonly execution_id: string;
  readonly reservation_id: string;
  readonly job_id: string;
  readonly state: 'running' | 'finished';
}

/** The executions of one executor. */
export class ExecutionTable {
  readonly #entries = new Map<string, Entry>();
  readonly #capacity: number;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Executions that hold a slot: running ones, wanted or not. */
  get running(): number {
    let count = 0;
    for (const entry of this.#entries.values()) if (entry.state === 'running') count += 1;
    return count;
  }

  /** Executions that run or wait for a slot. */
  get unfinished(): number {
    let count = 0;
    for (const entry of this.#entries.values()) if (entry.state !== 'finished') count += 1;
    return count;
  }

  /** Executions whose end or acceptance is outstanding. */
  get size(): number {
    return this.#entries.size;
  }

  /** `execute` came. A repeated order is never run twice: what is known about it is said again. */
  ordered(order: ExecutionOrder): ExecutionEffect[] {
    const known = this.#entries.get(order.executionId);
    if (known !== undefined) {
      if (known.report !== undefined) return [{ type: 'sendReport', execution: known.order, report: known.report }];
      return known.state === 'running' ? [{ type: 'sendStarted', execution: known.order }] : [];
    }
    this.#entries.set(order.executionId, { order, state: 'queued', report: undefined, orphaned: false });
    return this.#fill();
  }

  /** `execute` came for something that can not be run: it is only reported, without `started`. */
  refused(order: ExecutionOrder, report: Report): ExecutionEffect[] {
    const known = this.#entries.get(order.executionId);
    if (known !== undefined) return this.ordered(order);
    this.#entries.set(order.executionId, { order, state: 'finished', report, orphaned: false });
    return [{ type: 'sendReport', execution: order, report }];
  }

  /** A run has ended with this report. */
  finished(executionId: string, report: Report): ExecutionEffect[] {
    const entry = this.#entries.get(executionId);
    if (entry === undefined || entry.state === 'finished') return [];
    if (entry.orphaned) {
      this.#entries.delete(executionId);
      return [{ type: 'forget', executionId }, ...this.#fill()];
    }
    entry.state = 'finished';
    entry.report = report;
    return [{ type: 'sendReport', execution: entry.order, report }, ...this.#fill()];
  }

  /** The broker answered the report. */
  settled(executionId: string): ExecutionEffect[] {
    const entry = this.#entries.get(executionId);
    if (entry === undefined || entry.state !== 'finished') return [];
    this.#entries.delete(executionId);
    return [{ type: 'forget', executionId }];
  }

  /** `cancel_execution` came. */
  cancelled(executionId: string, cause: AbortCause): ExecutionEffect[] {
    const entry = this.#entries.get(executionId);
    if (entry === undefined || entry.state === 'finished') return [];
    if (entry.state === 'queued') {
      return this.finished(executionId, { type: 'failed', error: abortError(cause, 'stopped before it was started') });
    }
    return [{ type: 'abort', executionId, cause }];
  }

  /** What `hello.resume` says, at most `limit` entries; those beyond are given up. */
  resume(limit: number): { readonly entries: ResumeEntry[]; readonly effects: ExecutionEffect[] } {
    const entries: ResumeEntry[] = [];
    const effects: ExecutionEffect[] = [];
    for (const entry of this.#entries.values()) {
      if (entry.orphaned) continue;
      const { order } = entry;
      if (entries.length === limit) {
        effects.push(...this.#drop(entry));
        continue;
      }
      entries.push({
        execution_id: order.executionId,
        reservation_id: order.reservationId,
        job_id: order.jobId,
        state: entry.state === 'finished' ? 'finished' : 'running',
      });
    }
    return { entries, effects };
  }

  /** The broker's answer to `resume`; undefined when it does not speak the extension and has forgotten everything. */
  resumed(wanted: ReadonlySet<string> | undefined): ExecutionEffect[] {
    const effects: ExecutionEffect[] = [];
    for (const [executionId, entry] of this.#entries) {
      if (entry.orphaned) continue;
      if (wanted?.has(executionId) !== true) effects.push(...this.#drop(entry));
      else if (entry.report !== undefined) {
        effects.push({ type: 'sendReport', execution: entry.order, report: entry.report });
      } else if (entry.state === 'running') effects.push({ type: 'sendStarted', execution: entry.order });
    }
    return effects;
  }

  /** Stops everything that runs and drops what has not begun; used at the end of a stop. */
  abandon(cause: AbortCause): ExecutionEffect[] {
    const effects: ExecutionEffect[] = [];
    for (const executionId of [...this.#entries.keys()]) effects.push(...this.cancelled(executionId, cause));
    return effects;
  }

  #drop(entry: Entry): ExecutionEffect[] {
    const { executionId } = entry.order;
    entry.orphaned = true;
    if (entry.state === 'running') return [{ type: 'abort', executionId, cause: 'not_wanted' }];
    this.#entries.delete(executionId);
    return [{ type: 'forget', executionId }];
  }

  /** Starts queued executions while there are slots, oldest first. */
  #fill(): ExecutionEffect[] {
    const effects: ExecutionEffect[] = [];
    let free = this.#capacity - this.running;
    for (const entry of this.#entries.values()) {
      if (free <= 0) break;
      if (entry.state !== 'queued') continue;
      entry.state = 'running';
      free -= 1;
      effects.push(
        { type: 'sendStarted', execution: entry.order },
        { type: 'run', executionId: entry.order.executionId },
      );
    }
    return effects;
  }
}
