/**
 * Five-field cron expressions at a fixed offset from UTC. Tay v1, section 3.3: `*`, numbers, ranges, steps and lists; no names; 7 is Sunday;
 * day of month and weekday are OR-ed when both are restricted. No daylight saving: an offset is an offset.
 */

/** A parsed expression: which values of each field match. */
export interface Cron {
  readonly minutes: ReadonlySet<number>;
  readonly hours: ReadonlySet<number>;
  readonly days: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  readonly weekdays: ReadonlySet<number>;
  readonly anyDay: boolean;
  readonly anyWeekday: boolean;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** How far the search for the next match goes; an expression such as 30 February has none. */
const SEARCH_DAYS = 5 * 366;

/** Parses an expression; null when it is not valid. */
export function parseCron(expression: string): Cron | null {
  const fields = expression.split(/[ \t\n\r\f\v]+/).filter((field) => field !== '');
  const [minute, hour, day, month, weekday] = fields;
  if (fields.length !== 5 || minute === undefined || hour === undefined || day === undefined) return null;
  if (month === undefined || weekday === undefined) return null;
  const minutes = parseField(minute, 0, 59);
  const hours = parseField(hour, 0, 23);
  const days = parseField(day, 1, 31);
  const months = parseField(month, 1, 12);
  const weekdays = parseField(weekday, 0, 7);
  if (minutes === null || hours === null || days === null || months === null || weekdays === null) return null;
  if (weekdays.has(7)) weekdays.add(0);
  return { minutes, hours, days, months, weekdays, anyDay: day === '*', anyWeekday: weekday === '*' };
}

const PART = /^(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:\/(\d{1,4}))?$/;

function parseField(field: string, min: number, max: number): Set<number> | null {
  const values = new Set<number>();
  for (const part of field.split(',')) {
    const match = PART.exec(part);
    if (match === null) return null;
    const from = match[1] === undefined ? min : Number(match[1]);
    const single = match[1] !== undefined && match[2] === undefined;
    const to = single ? from : match[2] === undefined ? max : Number(match[2]);
    const step = match[3] === undefined ? 1 : Number(match[3]);
    if (from < min || to > max || to < from || step < 1) return null;
    for (let value = from; value <= to; value += step) values.add(value);
  }
  return values;
}

/** The first matching minute (UTC ms) at or after `from`, or null when there is none within five years. */
export function cronAtOrAfter(cron: Cron, offsetMinutes: number, from: number): number | null {
  const shift = offsetMinutes * MINUTE_MS;
  let local = Math.ceil((from + shift) / MINUTE_MS) * MINUTE_MS;
  const end = local + SEARCH_DAYS * DAY_MS;
  while (local <= end) {
    const date = new Date(local);
    if (!cron.months.has(date.getUTCMonth() + 1) || !dayMatches(cron, date))
      local = (Math.floor(local / DAY_MS) + 1) * DAY_MS;
    else if (!cron.hours.has(date.getUTCHours())) local = (Math.floor(local / HOUR_MS) + 1) * HOUR_MS;
    else if (!cron.minutes.has(date.getUTCMinutes())) local += MINUTE_MS;
    else return local - shift;
  }
  return null;
}

/** The last matching minute (UTC ms) at or before `from`, or `earliest` when there is none after it. */
export function cronAtOrBefore(cron: Cron, offsetMinutes: number, from: number, earliest: number): number {
  const shift = offsetMinutes * MINUTE_MS;
  let local = Math.floor((from + shift) / MINUTE_MS) * MINUTE_MS;
  while (local - shift > earliest) {
    const date = new Date(local);
    if (!cron.months.has(date.getUTCMonth() + 1) || !dayMatches(cron, date))
      local = Math.floor(local / DAY_MS) * DAY_MS - MINUTE_MS;
    else if (!cron.hours.has(date.getUTCHours())) local = Math.floor(local / HOUR_MS) * HOUR_MS - MINUTE_MS;
    else if (!cron.minutes.has(date.getUTCMinutes())) local -= MINUTE_MS;
    else return local - shift;
  }
  return earliest;
}

function dayMatches(cron: Cron, date: Date): boolean {
  const day = cron.days.has(date.getUTCDate());
  const weekday = cron.weekdays.has(date.getUTCDay());
  if (cron.anyDay && cron.anyWeekday) return true;
  if (cron.anyDay) return weekday;
  if (cron.anyWeekday) return day;
  return day || weekday;
}
