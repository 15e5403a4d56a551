/**
 * Declaring, firing and cancelling schedules. A firing and the schedule's next time are records of one turn, and the job's id is made from
 * (schedule, due time), so no firing is lost and none happens twice, restart or not.
 *
 * Cron follows the wall clock. `every` follows the monotonic clock while the broker lives, so a clock that is set does not stall it.
 */
import type { Schedule as Declared } from '@reelhost/protocol';
import { type Core, log, recordSchedule, refuse, refuseDegraded, reply } from './core.js';
import { cronAtOrAfter, cronAtOrBefore, parseCron } from './cron.js';
import { findJob } from './lookup.js';
import type { Peer } from './peer.js';
import { newSchedule, type Schedule, type ScheduleDefinition, sameSchedule, scheduleText } from './schedule.js';
import { admit, createJob } from './submission.js';
import type { RequestOf } from './turn.js';

/** A firing that cannot be enqueued now is tried again after this. */
const RETRY_MS = 1000;
const MINUTE_MS = 60_000;

/** `schedule`. */
export function declareSchedule(core: Core, peer: Peer, request: Declared): void {
  const definition = definitionOf(request);
  if (definition.kind === 'cron' && parseCron(definition.cron) === null) {
    return refuse(core, peer, request, 'invalid_schedule', 'cron must have five fields: minute hour day month weekday');
  }
  const id = request.declaration_id ?? core.entropy.token();
  const known = core.schedules.get(id);
  if (known !== undefined && known.cancelledAt === null && sameSchedule(known.definition, definition)) {
    return answer(core, peer, 'scheduled', request.request_id, known);
  }
  if (core.draining) return refuse(core, peer, request, 'unavailable', 'the broker is stopping');
  if (core.degraded !== null) return refuseDegraded(core, peer, request, core.degraded);
  const isNew = known === undefined || known.cancelledAt !== null;
  if (isNew && core.schedules.size - core.endedSchedules.size >= core.settings.maxSchedules) {
    return refuse(
      core,
      peer,
      request,
      'capacity',
      `there are ${core.settings.maxSchedules} schedules`,
      ',"reason":"schedules"',
    );
  }
  if (known !== undefined) unplan(core, known);
  core.endedSchedules.delete(id);
  const schedule = newSchedule(id, definition);
  schedule.lastJobId = known?.lastJobId ?? null;
  schedule.nextAt = firstFiring(core, request, definition);
  core.schedules.set(id, schedule);
  recordSchedule(core, schedule);
  planSchedule(core, schedule);
  answer(core, peer, 'scheduled', request.request_id, schedule);
}

function definitionOf(request: Declared): ScheduleDefinition {
  return {
    task: request.task,
    args: request.args.text,
    kind: request.cron === undefined ? 'every' : 'cron',
    cron: request.cron ?? '',
    everyMs: request.every_ms ?? 0,
    timezone: request.timezone,
    offsetMinutes: request.offset_minutes,
    overlap: request.overlap,
    catchUp: request.catch_up,
    options: request.options,
  };
}

/** `every` fires at once or after its delay; cron counts the minute that has begun. */
function firstFiring(core: Core, request: Declared, definition: ScheduleDefinition): number | null {
  const start = request.start_at ?? core.now.wall + (request.delay_ms ?? 0);
  if (definition.kind === 'every') return start;
  const given = request.start_at !== undefined || request.delay_ms !== undefined;
  return nextCron(definition, given ? start : Math.floor(start / MINUTE_MS) * MINUTE_MS);
}

function nextCron(definition: ScheduleDefinition, from: number): number | null {
  const cron = parseCron(definition.cron);
  return cron === null ? null : cronAtOrAfter(cron, definition.offsetMinutes, from);
}

function answer(core: Core, peer: Peer, type: string, requestId: string, schedule: Schedule): void {
  reply(
    core,
    peer,
    type,
    requestId,
    `,"schedule_id":${JSON.stringify(schedule.id)},"schedule":${scheduleText(schedule)}`,
  );
}

/** `cancel_schedule`. Jobs that it has fired go on. */
export function cancelSchedule(core: Core, peer: Peer, request: RequestOf<'cancel_schedule'>): void {
  const schedule = core.schedules.get(request.schedule_id);
  if (schedule === undefined) return refuse(core, peer, request, 'schedule_not_found', 'there is no such schedule');
  if (schedule.cancelledAt === null) {
    unplan(core, schedule);
    schedule.cancelledAt = core.now.wall;
    recordSchedule(core, schedule);
    core.endedSchedules.add(schedule.id);
    forgetEnded(core);
  }
  answer(core, peer, 'schedule_cancelled', request.request_id, schedule);
}

/** Of the cancelled schedules only the latest are remembered. */
export function forgetEnded(core: Core): void {
  for (const id of core.endedSchedules) {
    if (core.endedSchedules.size <= core.settings.endedSchedules) return;
    core.endedSchedules.delete(id);
    core.schedules.delete(id);
    core.records.forgottenSchedules.push(id);
  }
}

/** Sets the timer of a schedule. */
function planSchedule(core: Core, schedule: Schedule): void {
  if (schedule.nextAt === null || schedule.cancelledAt !== null) return;
  if (schedule.definition.kind === 'cron') schedule.deadline = core.appointments.add(schedule.nextAt, schedule.item);
  else
    schedule.deadline = core.durations.add(core.now.mono + Math.max(0, schedule.nextAt - core.now.wall), schedule.item);
}

/** Takes a schedule over from the journal. A wall clock that was set back meanwhile must not stall `every`. */
export function restoreSchedule(core: Core, schedule: Schedule): void {
  const { kind, everyMs } = schedule.definition;
  core.schedules.set(schedule.id, schedule);
  if (kind === 'every' && schedule.lastAt !== null && schedule.nextAt !== null)
    schedule.nextAt = Math.min(schedule.nextAt, core.now.wall + everyMs);
  planSchedule(core, schedule);
}

function unplan(core: Core, schedule: Schedule): void {
  core.appointments.cancel(schedule.deadline, schedule.item);
  core.durations.cancel(schedule.deadline, schedule.item);
  // A firing that waits for the last job belongs to the definition that is gone.
  if (schedule.lastJobId !== null) core.scheduleWaits.delete(schedule.lastJobId);
}

/** A schedule's time has come. */
export function scheduleDue(core: Core, id: string): void {
  const schedule = core.schedules.get(id);
  if (schedule === undefined || schedule.nextAt === null || schedule.cancelledAt !== null) return;
  const { definition, nextAt } = schedule;
  const busy = schedule.lastJobId !== null && core.jobs.has(schedule.lastJobId);
  if (busy && definition.overlap === 'queue') {
    core.scheduleWaits.set(schedule.lastJobId as string, id);
    return;
  }
  if (busy && definition.overlap === 'skip') {
    log(core, 'info', 'schedule.skipped', { scheduleId: id, dueAt: nextAt });
    return moveOn(core, schedule);
  }
  if (core.draining || core.degraded !== null || core.jobs.size >= core.settings.maxLiveJobs) {
    schedule.deadline = core.durations.add(core.now.mono + RETRY_MS, schedule.item);
    return;
  }
  fire(core, schedule, definition.catchUp === 'all' ? nextAt : latestSlot(definition, nextAt, core.now.wall));
  moveOn(core, schedule);
}

/** The last slot that is over, from the one that is due on: the others were missed. */
function latestSlot(definition: ScheduleDefinition, due: number, wall: number): number {
  if (definition.kind === 'every')
    return due + Math.max(0, Math.floor((wall - due) / definition.everyMs)) * definition.everyMs;
  const cron = parseCron(definition.cron);
  return cron === null ? due : cronAtOrBefore(cron, definition.offsetMinutes, wall, due);
}

function fire(core: Core, schedule: Schedule, dueAt: number): void {
  const { definition } = schedule;
  const { options } = definition;
  const id = core.entropy.occurrenceJobId(schedule.id, dueAt);
  schedule.lastAt = dueAt;
  if (findJob(core, id) !== null) return;
  schedule.lastJobId = id;
  const job = createJob(
    core,
    id,
    {
      task: definition.task,
      queue: options.queue,
      maxAttempts: options.retries + 1,
      timeoutMs: options.timeout_ms,
      delayMs: options.delay_ms ?? null,
      runAt: null,
      sessionId: null,
    },
    definition.args,
    'none',
  );
  core.counters.enqueued++;
  admit(core, job);
}

/** The next slot: `all` keeps every one, `latest` goes on in the future. */
function moveOn(core: Core, schedule: Schedule): void {
  const { definition } = schedule;
  const due = schedule.nextAt ?? core.now.wall;
  const { wall } = core.now;
  if (definition.kind === 'cron') {
    const from = definition.catchUp === 'all' ? due : Math.max(due, wall);
    schedule.nextAt = nextCron(definition, from + 1);
  } else {
    const next = due + definition.everyMs;
    if (next > wall + definition.everyMs) schedule.nextAt = wall + definition.everyMs;
    else if (next > wall || definition.catchUp === 'all') schedule.nextAt = next;
    else schedule.nextAt = next + Math.ceil((wall - next + 1) / definition.everyMs) * definition.everyMs;
  }
  recordSchedule(core, schedule);
  planSchedule(core, schedule);
}
