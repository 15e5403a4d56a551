/**
 * From the journal back to work after a start. What waited waits on; what ran on an executor of the extension may be resumed for a while;
 * what ran on a plain Tay connection was interrupted by the end of the broker, as Tay documents.
 */
import { type Core, log, recordSession } from './core.js';
import { waitForExecutor } from './handshake.js';
import type { Job } from './job.js';
import { newExecution, type StoredExecution } from './peer.js';
import type { Schedule } from './schedule.js';
import { forgetEnded, restoreSchedule } from './schedules.js';
import type { Session } from './session.js';
import { continueClosing } from './session-closing.js';
import { keepLost, watchPinned } from './session-end.js';
import { interrupt } from './settlement.js';
import { makeReady } from './submission.js';
import { park } from './waiting.js';

/** Everything unfinished in a journal, in the order of the journal. */
export interface StoredState {
  readonly jobs: readonly { readonly job: Job; readonly execution: StoredExecution | null }[];
  readonly sessions: readonly Session[];
  readonly schedules: readonly Schedule[];
}

/** Longest wait a retry can have been planned for; a longer one after a start means that the wall clock has jumped. */
const MAX_RETRY_WAIT_MS = 75_000;

/** Puts a journal's unfinished state into a new core. */
export function restore(core: Core, stored: StoredState): void {
  for (const session of stored.sessions) core.sessions.set(session.id, session);
  for (const schedule of stored.schedules) restoreSchedule(core, schedule);
  const ended = stored.schedules.filter((schedule) => schedule.cancelledAt !== null);
  ended.sort((a, b) => (a.cancelledAt ?? 0) - (b.cancelledAt ?? 0));
  for (const schedule of ended) core.endedSchedules.add(schedule.id);
  forgetEnded(core);
  const waiting: Job[] = [];
  for (const { job, execution } of stored.jobs) {
    core.jobs.set(job.id, job);
    if (job.args !== null) core.residentArgsBytes += job.argsBytes;
    const session = job.sessionId === null ? undefined : core.sessions.get(job.sessionId);
    if (session !== undefined) session.running = job;
    if (job.secrets === 'missing')
      core.durations.add(core.now.mono + core.settings.secretsWindowMs, { kind: 'secretsWindow', jobId: job.id });
    if (job.state === 'executing') restoreExecution(core, job, execution);
    else waiting.push(job);
  }
  waiting.sort((a, b) => (a.dueAt ?? a.createdAt) - (b.dueAt ?? b.createdAt) || a.seq - b.seq);
  for (const job of waiting) restoreWaiting(core, job);
  restoreSessions(core);
}

function restoreExecution(core: Core, job: Job, stored: StoredExecution | null): void {
  const execution = newExecution(job, stored ?? lostExecution(core, job), null);
  job.execution = execution;
  core.executions.set(execution.executionId, execution);
  if (job.sessionId === null) core.executing.set(job.queue, (core.executing.get(job.queue) ?? 0) + 1);
  else {
    const session = core.sessions.get(job.sessionId);
    if (session !== undefined) session.runningExecution = execution;
  }
  if (!execution.extension) return interrupt(core, execution);
  const elapsed = Math.min(job.timeoutMs, Math.max(0, core.now.wall - execution.startedAt));
  execution.deadline = core.durations.add(core.now.mono + job.timeoutMs - elapsed, execution.timeoutItem);
  waitForExecutor(core, execution);
  log(core, 'info', 'execution.awaited', { jobId: job.id, runtimeId: execution.runtimeId });
}

/** Stands for an execution of which a damaged journal says nothing. */
function lostExecution(core: Core, job: Job): StoredExecution {
  return {
    executionId: `lost.${job.id}`,
    reservationId: '',
    runtimeId: '',
    pid: null,
    extension: false,
    idempotent: false,
    startedAt: core.now.wall,
  };
}

function restoreWaiting(core: Core, job: Job): void {
  if (job.state === 'available' || job.dueAt === null) {
    job.state = 'available';
    return makeReady(core, job);
  }
  if (job.state === 'scheduled' && job.delayMs === null) {
    return park(job, core.appointments, job.dueAt);
  }
  const most = job.state === 'retryable' ? MAX_RETRY_WAIT_MS : (job.delayMs ?? 0);
  const wait = Math.min(most, Math.max(0, job.dueAt - core.now.wall));
  park(job, core.durations, core.now.mono + wait);
}

function restoreSessions(core: Core): void {
  for (const session of [...core.sessions.values()]) {
    if (session.state === 'closing') {
      session.stopped = session.runningExecution === null;
      continueClosing(core, session);
    } else if (session.state === 'open' && session.runtimeId !== null) watchPinned(core, session);
    if (!session.stored) recordSession(core, session);
  }
  const lost = [...core.sessions.values()].filter((session) => session.state === 'lost');
  lost.sort((a, b) => (a.lostAt ?? a.openedAt) - (b.lostAt ?? b.openedAt));
  for (const session of lost) {
    // A journal of an earlier release does not say when.
    if (session.lostAt === null) recordSession(core, session);
    session.lostAt ??= core.now.wall;
    keepLost(core, session);
  }
}
