/** Schedules, decided by the core alone: firing, catching up, overlap, restart. Tay's local executor protocol v1, section 3.3. */
import { expect, test } from 'vitest';
import { cronAtOrAfter, cronAtOrBefore, parseCron } from '../src/core/cron.js';
import { CoreBench } from './core-bench.js';

const at = (text: string): number => Date.parse(text);

test.each([
  ['15 9 * * 1-5', 0, '2026-01-02T09:14:31Z', '2026-01-02T09:15:00Z'],
  ['0 9 * * *', 120, '2026-01-02T00:00:00Z', '2026-01-02T07:00:00Z'],
  ['0 0 13 * 1', 0, '2026-01-01T00:00:00Z', '2026-01-05T00:00:00Z'],
  ['0 0 13 * 1', 0, '2026-01-06T00:00:00Z', '2026-01-12T00:00:00Z'],
  ['0 0 13 * 1', 0, '2026-01-12T00:00:01Z', '2026-01-13T00:00:00Z'],
  ['5/15 * * * *', 0, '2026-01-01T00:06:00Z', '2026-01-01T01:05:00Z'],
  ['*/20,7 * * * *', 0, '2026-01-01T00:01:00Z', '2026-01-01T00:07:00Z'],
  ['0 0 * * 7', 0, '2026-01-01T00:00:00Z', '2026-01-04T00:00:00Z'],
  ['0 0 29 2 *', 0, '2026-01-01T00:00:00Z', '2028-02-29T00:00:00Z'],
  ['30 23 * * *', -330, '2026-01-01T04:00:00Z', '2026-01-01T05:00:00Z'],
])('cron %s at offset %i from %s is %s', (expression, offset, from, expected) => {
  const cron = parseCron(expression);
  if (cron === null) throw new Error('not parsed');
  expect(new Date(cronAtOrAfter(cron, offset, at(from)) ?? 0).toISOString()).toBe(new Date(expected).toISOString());
}); // prettier-ignore

test.each([
  '* * * *',
  '61 * * * *',
  '* * * * * *',
  '5-1 * * * *',
  '*/0 * * * *',
  'a * * * *',
  '* * 0 * *',
  '* * * 13 *',
  '* * * * 8',
  '',
])('cron %j is refused', (expression) => expect(parseCron(expression)).toBeNull());

test('an impossible date never fires', () => {
  const cron = parseCron('0 0 30 2 *');
  expect(cron === null ? 'unparsed' : cronAtOrAfter(cron, 0, at('2026-01-01T00:00:00Z'))).toBeNull();
});

function runs(bench: CoreBench, worker: number): number {
  let count = 0;
  while (bench.has(worker, 'execute')) {
    bench.request(worker, 'succeeded', { ...bench.execute(worker), result: null });
    count++;
  }
  return count;
}

test('every fires at once, then at each interval; an equal redeclaration changes nothing, a changed one replaces', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const worker = bench.worker(['t']);
  const declare = (seconds: number) =>
    bench.request(client, 'schedule', { task: 't', every: { seconds }, declaration_id: 'd' });
  expect(declare(10)).toMatchObject({
    type: 'scheduled',
    schedule_id: 'd',
    schedule: { kind: 'every', overlap: 'skip', catch_up: 'latest', cancelled_at: null },
  });
  bench.pass(20);
  expect(runs(bench, worker)).toBe(1);
  bench.pass(5000);
  declare(10);
  bench.pass(4000);
  expect(runs(bench, worker)).toBe(0);
  bench.pass(1100);
  expect(runs(bench, worker)).toBe(1);
  declare(20);
  bench.pass(20);
  expect(runs(bench, worker)).toBe(1);
});

test('overlap: skip drops a firing while the last job runs, queue lets it wait, allow lets both run', () => {
  for (const [overlap, afterEnd, meanwhile] of [
    ['skip', 0, 1],
    ['queue', 1, 1],
    ['allow', 0, 3],
  ] as const) {
    const bench = new CoreBench();
    const client = bench.client();
    const worker = bench.worker(['t'], { max_concurrency: 10 });
    bench.request(client, 'schedule', { task: 't', every: { seconds: 1 }, overlap, options: { timeout_ms: 60_000 } });
    bench.pass(2200);
    const executes = (bench.sent.get(worker) ?? []).filter((message) => message.type === 'execute').length;
    expect([overlap, executes]).toEqual([overlap, meanwhile]);
    runs(bench, worker);
    bench.pass(20);
    expect([overlap, runs(bench, worker)]).toEqual([overlap, afterEnd]);
  }
}); // prettier-ignore

test('after a standstill latest fires once, all fires every slot, each with its own stable job id', () => {
  for (const [catchUp, expected] of [
    ['latest', 1],
    ['all', 5],
  ] as const) {
    const bench = new CoreBench();
    const client = bench.client();
    bench.request(client, 'schedule', {
      task: 't',
      every: { seconds: 10 },
      delay: 10,
      catch_up: catchUp,
      overlap: 'allow',
      declaration_id: 'd',
    });
    bench.crash(52_000);
    const worker = bench.worker(['t'], { max_concurrency: 10 });
    bench.pass(200);
    const ids = new Set((bench.sent.get(worker) ?? []).map((message) => message['job_id']));
    expect([catchUp, ids.size]).toEqual([catchUp, expected]);
  }
}); // prettier-ignore

test.each([
  ['* * * * *', 0, '2026-01-02T09:14:31Z', '2026-01-02T09:14:00Z'],
  ['15 9 * * 1-5', 0, '2026-01-05T09:14:00Z', '2026-01-02T09:15:00Z'],
  ['0 9 * * *', 120, '2026-01-02T06:59:00Z', '2026-01-01T07:00:00Z'],
  ['0 0 29 2 *', 0, '2029-01-01T00:00:00Z', '2028-02-29T00:00:00Z'],
  ['0 0 30 2 *', 0, '2029-01-01T00:00:00Z', '2020-01-01T00:00:00Z'],
])('the last minute of %s at offset %i until %s was %s', (expression, offset, from, expected) => {
  const cron = parseCron(expression);
  if (cron === null) throw new Error('not parsed');
  const found = cronAtOrBefore(cron, offset, at(from), at('2020-01-01T00:00:00Z'));
  expect(new Date(found).toISOString()).toBe(new Date(expected).toISOString());
}); // prettier-ignore

test('what latest makes up for is the last slot that was missed', () => {
  for (const [timing, slot] of [
    [{ every: { seconds: 10 }, delay: 10 }, 50_000],
    [{ cron: '* * * * *', delay: 60 }, 180_000],
  ] as const) {
    const bench = new CoreBench();
    const declared = { task: 't', overlap: 'allow', declaration_id: 'd', ...timing };
    const started = bench.wall;
    bench.request(bench.client(), 'schedule', declared);
    bench.crash(slot + 2000);
    bench.pass(20);
    const shown = bench.request(bench.client(), 'schedule', declared) as { schedule?: { last_at: number } };
    expect(shown.schedule?.last_at).toBe(started + slot);
  }
}); // prettier-ignore

test('a wall clock set back while the broker was down does not stall an interval', () => {
  const bench = new CoreBench();
  bench.request(bench.client(), 'schedule', { task: 't', every: { seconds: 2 }, overlap: 'allow' });
  bench.pass(20);
  bench.pass(20, 20 - 3_600_000);
  bench.crash();
  const worker = bench.worker(['t'], { max_concurrency: 10 });
  bench.pass(20);
  expect(runs(bench, worker)).toBe(1);
  bench.pass(2100);
  expect(runs(bench, worker)).toBe(1);
});

test('a restart neither loses a schedule nor fires a slot twice', () => {
  const bench = new CoreBench();
  const client = bench.client();
  bench.request(client, 'schedule', { task: 't', every: { seconds: 5 }, declaration_id: 'd', overlap: 'allow' });
  bench.pass(20);
  let executed = 0;
  for (let n = 0; n < 4; n++) {
    bench.crash(100);
    const worker = bench.worker(['t'], { max_concurrency: 10 });
    bench.pass(2500);
    executed += runs(bench, worker);
  }
  expect(executed).toBe(3);
});

test('cancel ends it for good; unknown ones and bad declarations are refused', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const worker = bench.worker(['t']);
  bench.request(client, 'schedule', { task: 't', cron: '* * * * *', declaration_id: 'd' });
  bench.pass(20);
  expect(runs(bench, worker)).toBe(1);
  expect(bench.request(client, 'cancel_schedule', { schedule_id: 'd' })).toMatchObject({
    type: 'schedule_cancelled',
    schedule: { next_at: null },
  });
  bench.pass(120_000);
  expect(runs(bench, worker)).toBe(0);
  bench.crash();
  const again = bench.client();
  expect(bench.request(again, 'cancel_schedule', { schedule_id: 'x' })).toMatchObject({
    error: { code: 'schedule_not_found' },
  });
  expect(bench.request(again, 'schedule', { task: 't', cron: '61 * * * *' })).toMatchObject({
    error: { code: 'invalid_schedule' },
  });
});

test('a wall clock set back an hour does not stall an interval', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const worker = bench.worker(['t']);
  bench.request(client, 'schedule', { task: 't', every: { seconds: 2 } });
  bench.pass(20);
  expect(runs(bench, worker)).toBe(1);
  bench.pass(20, 20 - 3_600_000);
  bench.pass(6000);
  expect(runs(bench, worker)).toBe(1);
  bench.pass(2100);
  expect(runs(bench, worker)).toBe(1);
});
