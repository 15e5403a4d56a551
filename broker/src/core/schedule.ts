/** A durable schedule and how it looks on the wire. Tay's local executor protocol v1, section 3.3. */
import type { EnqueueOptions } from '@reelhost/protocol';
import type { RawJson } from './job.js';
import type { DueItem } from './turn.js';

/** What was declared; an equal declaration under the same id changes nothing. */
export interface ScheduleDefinition {
  readonly task: string;
  readonly args: RawJson;
  readonly kind: 'cron' | 'every';
  /** The cron expression; empty for `every`. */
  readonly cron: string;
  /** The interval in ms; 0 for `cron`. */
  readonly everyMs: number;
  readonly timezone: string;
  readonly offsetMinutes: number;
  readonly overlap: 'allow' | 'skip' | 'queue';
  readonly catchUp: 'latest' | 'all';
  readonly options: EnqueueOptions;
}

/** A declared schedule and when it fires. */
export interface Schedule {
  readonly id: string;
  readonly definition: ScheduleDefinition;
  /** UTC ms of the next firing, or null when there is none any more. */
  nextAt: number | null;
  lastAt: number | null;
  cancelledAt: number | null;
  /** The job of the last firing. */
  lastJobId: string | null;
  deadline: number;
  readonly item: DueItem;
  touched: boolean;
}

/** A schedule that has never fired and is not planned yet. */
export function newSchedule(id: string, definition: ScheduleDefinition): Schedule {
  return {
    id,
    definition,
    nextAt: null,
    lastAt: null,
    cancelledAt: null,
    lastJobId: null,
    deadline: -1,
    item: { kind: 'schedule', scheduleId: id },
    touched: false,
  };
}

/** Whether two declarations mean the same schedule. */
export function sameSchedule(a: ScheduleDefinition, b: ScheduleDefinition): boolean {
  return JSON.stringify(parts(a)) === JSON.stringify(parts(b));
}

function parts(definition: ScheduleDefinition): readonly unknown[] {
  const { task, args, kind, cron, everyMs, offsetMinutes, overlap, catchUp, options } = definition;
  return [task, args, kind, cron, everyMs, offsetMinutes, overlap, catchUp, Object.entries(options).sort()];
}

/** The `schedule` object as JSON text. */
export function scheduleText(schedule: Schedule): string {
  const { task, kind, timezone, overlap, catchUp } = schedule.definition;
  return JSON.stringify({
    id: schedule.id,
    task,
    kind,
    timezone,
    overlap,
    catch_up: catchUp,
    next_at: schedule.cancelledAt === null ? schedule.nextAt : null,
    last_at: schedule.lastAt,
    cancelled_at: schedule.cancelledAt,
  });
}
