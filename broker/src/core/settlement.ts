/**
 * How a job leaves a state: ends, waits for another try, or goes back to the line. Every path that ends a job comes through
 * {@link settle}; every path that frees an executor's slot comes through {@link endExecution}. No other file does either.
 */
import { BROKER_FAILURES, type BrokerFailure } from '@reelhost/protocol';
import { type Core, log, push, recordJob, recordSession, reply } from './core.js';
import { isFinal, type Job, type JobError, moveJob, type RawJson, TAY_ERROR_CODE } from './job.js';
import { isLarge, jobText, settledFields } from './job-view.js';
import { type Execution, pinKey } from './peer.js';
import { continueClosing } from './session-closing.js';
import { park, unpark } from './waiting.js';
import { flushProgress } from './watching.js';

/** An error the broker itself gives a job. */
export function brokerError(type: BrokerFailure, message?: string): JobError {
  const row = BROKER_FAILURES[type];
  const code =
    type === 'timeout'
      ? TAY_ERROR_CODE.timeout
      : type === 'executor_lost' || type === 'interrupted_too_often'
        ? TAY_ERROR_CODE.interrupted
        : TAY_ERROR_CODE.taskFailed;
  return { type, message: message ?? row.meaning, retryable: row.retryable, code };
}

/** Ends a job. Durable with this turn; its watchers hear of it after that. */
export function settle(
  core: Core,
  job: Job,
  state: 'completed' | 'discarded' | 'cancelled',
  outcome: { readonly result: RawJson | null; readonly error: JobError | null },
): void {
  leave(core, job);
  moveJob(job, state);
  job.completedAt = core.now.wall;
  job.dueAt = null;
  job.result = outcome.result;
  job.resultBytes = outcome.result?.length ?? 0;
  job.error = outcome.error ?? (state === 'completed' ? null : job.error);
  core.counters[state]++;
  if (job.secrets !== 'none') core.effects.push({ kind: 'forgetSecrets', jobId: job.id });
  job.secrets = 'none';
  core.secretsHeld -= job.secretsHeld;
  job.secretsHeld = 0;
  core.jobs.delete(job.id);
  if (job.args !== null) core.residentArgsBytes -= job.argsBytes;
  core.recent.add(job);
  recordJob(core, job);
  tellWatchers(core, job);
  if (core.scheduleWaits.size > 0) releaseSchedule(core, job.id);
  if (job.sessionId !== null) keepInSession(core, job);
}

/** Plans another try of a job whose attempt has failed, or which was cut off. */
export function retryLater(core: Core, job: Job, error: JobError): void {
  leave(core, job);
  moveJob(job, 'retryable');
  job.error = error;
  core.counters.retried++;
  const delay = retryDelay(core, Math.max(1, job.attempt));
  job.dueAt = core.now.wall + delay;
  park(job, core.durations, core.now.mono + delay);
  recordJob(core, job);
}

/** Puts a job that has not really run back at the head of its line; costs no attempt. */
export function putBack(core: Core, job: Job, attempt: number): void {
  leave(core, job);
  moveJob(job, 'available');
  job.attempt = attempt;
  core.lanes.putBack(job, pinOf(core, job), isLarge(core, job.argsBytes));
  core.dispatchWanted = true;
  recordJob(core, job);
}

/** Tay's Event-v1 backoff after attempt `n`: 1 s doubling to 60 s, with up to a quarter of jitter. */
export function retryDelay(core: Core, attempt: number): number {
  const delay = Math.min(60_000, 1000 * 2 ** Math.min(attempt - 1, 6));
  return delay + core.entropy.upTo(Math.min(Math.floor(delay / 4), 60_000 - delay));
}

/** The runtime a job must run on, as {@link pinKey}, or null. */
export function pinOf(core: Core, job: Job): string | null {
  const session = job.sessionId === null ? undefined : core.sessions.get(job.sessionId);
  return session === undefined || session.runtimeId === null ? null : pinKey(session.runtimeId, session.runtimePid);
}

/** Takes a job out of what it was in: the executing count, and the hands of its execution. */
function leave(core: Core, job: Job): void {
  unpark(core, job);
  if (job.state === 'executing') {
    if (job.sessionId === null) {
      const count = core.executing.get(job.queue) ?? 1;
      if (count <= 1) core.executing.delete(job.queue);
      else core.executing.set(job.queue, count - 1);
    }
    if (job.execution !== null) detach(core, job.execution);
    job.execution = null;
    core.dispatchWanted = true;
  }
}

/** The job goes its way without its execution; the execution keeps its slot until it ends. */
function detach(core: Core, execution: Execution): void {
  execution.phase = 'detached';
  core.durations.cancel(execution.deadline, execution.timeoutItem);
  if (execution.connection === null) endExecution(core, execution, hasEnded(core, execution));
}

/** Whether an execution without a connection is known to run no more: its process is gone. An absent one may still be at work. */
export function hasEnded(core: Core, execution: Execution): boolean {
  return !execution.extension || (execution.pid !== null && !core.archive.isProcessAlive(execution.pid));
}

/**
 * An execution is over for its executor: reported, refused or gone. Frees the slot and answers those who waited for it.
 * `stopped` is false when nobody knows whether it has really ended.
 */
export function endExecution(core: Core, execution: Execution, stopped: boolean): void {
  execution.connection?.executions.delete(execution.executionId);
  execution.connection = null;
  core.executions.delete(execution.executionId);
  core.durations.cancel(execution.deadline, execution.timeoutItem);
  core.durations.cancel(execution.awayDeadline, execution.awayItem);
  core.dispatchWanted = true;
  for (const waiter of execution.waiters) answerCancel(core, execution.job, waiter, stopped);
  execution.waiters = [];
  const outlived = core.outlived.get(execution.executionId);
  if (outlived !== undefined) {
    core.outlived.delete(execution.executionId);
    outlived.stopped = stopped;
    recordSession(core, outlived);
  }
  const { sessionId } = execution.job;
  const session = sessionId === null ? undefined : core.sessions.get(sessionId);
  if (session?.runningExecution === execution) {
    session.runningExecution = null;
    session.stopped = stopped;
    if (session.running !== null && isFinal(session.running.state)) session.running = null;
    if (session.state === 'closing') continueClosing(core, session);
  }
}

/** The answer of a `cancel` that waited. */
export function answerCancel(core: Core, job: Job, waiter: Execution['waiters'][number], stopped: boolean): void {
  core.durations.cancel(waiter.deadline, waiter.item);
  const view = jobText(core, waiter.peer, job, false);
  reply(
    core,
    waiter.peer,
    'cancelled',
    waiter.requestId,
    `,"status":"${job.state}","job":${view},"stopped":${stopped}`,
  );
}

/** A firing that waited for the end of this job goes ahead. */
function releaseSchedule(core: Core, jobId: string): void {
  const schedule = core.schedules.get(core.scheduleWaits.get(jobId) ?? '');
  core.scheduleWaits.delete(jobId);
  if (schedule !== undefined) schedule.deadline = core.durations.add(core.now.mono, schedule.item);
}

function tellWatchers(core: Core, job: Job): void {
  const watchers = core.watchers.get(job.id);
  if (watchers === undefined) return;
  flushProgress(core, job);
  core.watchers.delete(job.id);
  const fields = settledFields(job, job.result ?? 'null');
  for (const peer of watchers) {
    peer.watches.delete(job.id);
    push(core, peer, 'job_settled', fields);
  }
}

/** The last results of a session are kept, of older jobs only the id, so that no repeated id can ever run again. */
function keepInSession(core: Core, job: Job): void {
  const session = core.sessions.get(job.sessionId as string);
  if (session === undefined) return;
  if (session.running === job && session.runningExecution === null) session.running = null;
  session.kept.push(job.id);
  while (session.kept.length > core.settings.sessionResults) {
    const oldest = session.kept.shift();
    if (oldest === undefined) break;
    core.recent.delete(oldest);
    core.records.tombstones.push(oldest);
  }
  if (session.state === 'closing') continueClosing(core, session);
}

/**
 * An execution was cut off: its executor is gone and did not come back. What may run again does, and is counted;
 * what may not ends as `executor_lost`, because nobody knows how far it came.
 */
export function interrupt(core: Core, execution: Execution): void {
  const { job } = execution;
  if (execution.phase === 'detached') {
    endExecution(core, execution, true);
    return;
  }
  core.counters.interrupted++;
  log(core, 'warn', 'job.interrupted', { jobId: job.id, task: job.task, runtimeId: execution.runtimeId });
  const lost = job.sessionId !== null && core.sessions.get(job.sessionId)?.state === 'lost';
  const free = !lost && (execution.idempotent || (!execution.extension && job.sessionId === null));
  if (execution.phase === 'stopping') {
    endStopped(core, execution);
  } else if (free) {
    job.interruptions++;
    const error = brokerError('executor_lost');
    if (job.interruptions >= core.settings.maxInterruptions) {
      settle(core, job, 'discarded', { result: null, error: brokerError('interrupted_too_often') });
    } else if (execution.extension) {
      putBack(core, job, job.attempt - 1);
    } else {
      const { attempt } = job;
      retryLater(core, job, error);
      job.attempt = attempt - 1;
    }
  } else if (job.sessionId === null && job.attempt < job.maxAttempts) {
    job.interruptions++;
    retryLater(core, job, brokerError('executor_lost'));
  } else {
    settle(core, job, 'discarded', { result: null, error: brokerError('executor_lost') });
  }
  endExecution(core, execution, true);
}

/** Settles the job of an execution that was told to stop at its time limit, whatever it reported but success. */
export function endStopped(core: Core, execution: Execution, details?: JobError): void {
  const { job } = execution;
  const error = brokerError('timeout');
  const kept = details?.details === undefined ? error : { ...error, details: details.details };
  core.counters.timeouts++;
  if (job.sessionId === null && job.attempt < job.maxAttempts) retryLater(core, job, kept);
  else settle(core, job, 'discarded', { result: null, error: kept });
}
