/** What must not grow for ever, must not harm others, or must not be left behind: decided by the core alone. */
import { expect, test } from 'vitest';
import { Deadlines } from '../src/core/deadlines.js';
import { putSecrets, weighSecrets } from '../src/core/secret-places.js';
import { CoreBench } from './core-bench.js';

test('a firing that waits for the last job ends with its definition: the new one fires when it says', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const worker = bench.worker(['t'], { max_concurrency: 5 });
  const declare = (fields: Record<string, unknown>) =>
    bench.request(client, 'schedule', { task: 't', declaration_id: 'd', overlap: 'queue', ...fields });
  declare({ every: { seconds: 1 } });
  bench.pass(2500);
  const first = bench.execute(worker);
  declare({ every: { hours: 1 }, delay: 3600 });
  bench.request(worker, 'succeeded', { ...first, result: null });
  bench.pass(60_000);
  expect(bench.has(worker, 'execute')).toBe(false);
  bench.pass(3_600_000);
  expect(bench.has(worker, 'execute')).toBe(true);
});

test('cancelled schedules do not use up the limit, and only the latest are remembered, restart or not', () => {
  const bench = new CoreBench({ maxSchedules: 3, endedSchedules: 2 });
  let client = bench.client();
  const declare = (id: string) =>
    bench.request(client, 'schedule', { task: 't', every: { days: 1 }, delay: 60, declaration_id: id }).type;
  const cancel = (id: string) => bench.request(client, 'cancel_schedule', { schedule_id: id }).type;
  for (let n = 0; n < 10; n++) {
    expect(declare(`s${n}`)).toBe('scheduled');
    expect(cancel(`s${n}`)).toBe('schedule_cancelled');
  }
  expect(cancel('s9')).toBe('schedule_cancelled');
  expect(cancel('s7')).toBe('error');
  bench.crash();
  client = bench.client();
  expect(bench.core.schedules.size).toBe(2);
  expect(['a', 'b', 'c', 'd'].map(declare)).toEqual(['scheduled', 'scheduled', 'scheduled', 'error']);
  expect(declare('s9')).toBe('error');
});

test('deadlines that were taken back leave nothing behind, however far they are', () => {
  const deadlines = new Deadlines<number>();
  deadlines.add(5_000_000, -1);
  for (let n = 0; n < 100_000; n++) deadlines.cancel(deadlines.add(86_400_000 + n * 10, n), n);
  expect(deadlines.buckets).toBeLessThan(10_000);
  expect(deadlines.next()).toBe(5_000_000);
  expect(deadlines.take(90_000_000)).toEqual([-1]);
  expect(deadlines.next()).toBeNull();
});

test('a job that is cancelled before it is due is let go', () => {
  const bench = new CoreBench();
  const client = bench.client();
  for (const options of [{ delay: 1e8 }, { run_at: bench.wall + 1e11 }]) {
    const id = bench.enqueue(client, 't', options);
    const job = bench.core.jobs.get(id);
    expect(job?.parked).not.toBeNull();
    bench.request(client, 'cancel', { job_id: id });
    expect(job?.parked).toBeNull();
  }
  expect(bench.core.durations.next()).toBeNull();
  expect(bench.core.appointments.next()).toBeNull();
});

test('a plain worker is not sent what would make it drop its connection; an executor of the extension is', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const plain = bench.plainWorker(['t'], { max_concurrency: 9 });
  const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) });
  const many = bench.enqueue(client, 't', {}, { args: { list: Array.from({ length: 9990 }, () => 0) } });
  expect(bench.take(plain, 'execute')['job_id']).toBe(many);
  const wide = { list: Array.from({ length: 10_001 }, () => 0) };
  const tooMany = bench.enqueue(client, 't', {}, { args: wide });
  const secret = bench.enqueue(
    client,
    't',
    {},
    { args: { a: 'reelhost-secret:s' }, secrets: { s: 'x'.repeat(400_000) } },
  );
  const deep = bench.enqueue(client, 't', {}, { args: nested(31) });
  expect(bench.take(plain, 'execute')['job_id']).toBe(deep);
  expect(bench.has(plain, 'execute')).toBe(false);
  const able = bench.worker(['t'], { max_concurrency: 9 });
  expect([bench.take(able, 'execute')['job_id'], bench.take(able, 'execute')['job_id']]).toEqual([tooMany, secret]);
});

test('secrets are put in only where a whole string asks for them, and weighed before', () => {
  const args = String.raw`{"a":"reelhost-secret:s","reelhost-secret:s":1,"b":"x reelhost-secret:s","c":"\\"reelhost-secret:s\\"","d":["reelhost-secret:s","reelhost-secret:t"],"n":1.0}`;
  const secrets = { s: 'https://h/?a="1"' };
  const put = putSecrets(args, secrets);
  expect(put).toBe(
    String.raw`{"a":"https://h/?a=\"1\"","reelhost-secret:s":1,"b":"x reelhost-secret:s","c":"\\"reelhost-secret:s\\"","d":["https://h/?a=\"1\"","reelhost-secret:t"],"n":1.0}`,
  );
  expect(weighSecrets(args, secrets)).toEqual({ held: 17, growth: Math.max(0, put.length - args.length) });
});

test('secrets are bounded: what they make of the arguments, and all of them together', () => {
  const bench = new CoreBench({ maxSecretsHeld: 1000 });
  const client = bench.client();
  const bomb = {
    args: { a: Array.from({ length: 5000 }, () => 'reelhost-secret:s') },
    secrets: { s: 'x'.repeat(1000) },
  };
  expect(bench.request(client, 'enqueue', { task: 't', ...bomb })).toMatchObject({
    error: { code: 'capacity', reason: 'args_bytes' },
  });
  const more = { args: { a: 'reelhost-secret:s' }, secrets: { s: 'x'.repeat(1000) } };
  const id = bench.enqueue(client, 't', {}, more);
  expect(bench.request(client, 'enqueue', { task: 't', ...more })).toMatchObject({
    error: { code: 'capacity', reason: 'secrets' },
  });
  bench.request(client, 'cancel', { job_id: id });
  bench.enqueue(client, 't', {}, more);
});

test('args are measured in bytes, not in characters', () => {
  const bench = new CoreBench();
  const plain = bench.client({ extensions: [] });
  const args = { text: '\u6f22'.repeat(90_000) };
  expect(bench.request(plain, 'enqueue', { task: 't', args })).toMatchObject({ error: { code: 'capacity' } });
});

test('a session whose directory was never made is made when it is opened again; one that could not be made may be opened again', () => {
  const bench = new CoreBench();
  let client = bench.client();
  const open = () => bench.request(client, 'open_session', { session_id: 's1', task: 't' }).type;
  bench.noDirectories = true;
  const job = { task: 't', args: {}, session_id: 's1', options: { submission_id: 'a' } };
  bench.send(client, 'open_session', { session_id: 's1', task: 't' });
  bench.send(client, 'enqueue', job);
  bench.turn();
  const { job_id: id } = bench.take(client, 'enqueued');
  bench.turn();
  expect(bench.status(client, id as string)).toMatchObject({ state: 'discarded', errors: [{ type: 'executor_lost' }] });
  bench.noDirectories = false;
  expect(open()).toBe('session_opened');
  bench.directories.clear();
  bench.crash();
  client = bench.client();
  expect(open()).toBe('session_opened');
  expect(bench.directories.has('s1')).toBe(true);
});

test('an idempotent op of a pinned session ends with the session when its runtime stays away', () => {
  const bench = new CoreBench();
  const client = bench.client();
  bench.request(client, 'open_session', { session_id: 's1', task: 't' });
  bench.alive.add(7);
  const worker = bench.worker(['t'], { pid: 7 }, { t: { idempotent: true } });
  const id = bench.enqueue(client, 't', {}, { session_id: 's1' });
  bench.execute(worker);
  bench.disconnect(worker);
  bench.pass(15_500);
  expect(bench.request(client, 'inspect', { what: 'session', id: 's1' })).toMatchObject({ data: { state: 'lost' } });
  expect(bench.status(client, id)).toMatchObject({ state: 'discarded', errors: [{ type: 'executor_lost' }] });
});

test('a job that is cancelled while its executor is away is not said to have stopped, unless the process is gone', () => {
  const bench = new CoreBench();
  const client = bench.client();
  for (const alive of [true, false]) {
    bench.alive.add(7);
    const worker = bench.worker(['t'], { pid: 7, runtime_id: 'w' });
    const id = bench.enqueue(client, 't');
    bench.execute(worker);
    bench.disconnect(worker);
    if (!alive) bench.alive.delete(7);
    expect(bench.request(client, 'cancel', { job_id: id, wait_ms: 1000 })).toMatchObject({
      type: 'cancelled',
      stopped: !alive,
    });
  }
});

test('one executor that declares too much is shown without its tasks, and may not declare without end', () => {
  const bench = new CoreBench({ maxTasksPerPeer: 300 });
  const client = bench.client();
  bench.worker(['small'], { runtime_id: 'a' });
  const greedy = bench.worker([], { runtime_id: 'b' });
  const register = (from: number, count: number) => {
    const tasks = Array.from({ length: count }, (_, n) => `t${from + n}`);
    const attributes = { text: 'x'.repeat(16_000) };
    return bench.request(greedy, 'register_tasks', {
      tasks,
      declarations: Object.fromEntries(tasks.map((task) => [task, { attributes }])),
    });
  };
  expect(register(0, 256)).toMatchObject({ type: 'tasks_registered' });
  expect(register(0, 256)).toMatchObject({ type: 'tasks_registered' });
  expect(register(256, 45)).toMatchObject({ error: { code: 'invalid_tasks' } });
  expect(bench.request(client, 'watch_registry')).toMatchObject({
    runtimes: [
      { runtime_id: 'a', tasks: { small: {} } },
      { runtime_id: 'b', tasks: {}, tasks_omitted: 256 },
    ],
  });
});

test('an executor that was away at its time limit is told to stop when it comes back', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const hello = { pid: 7, runtime_id: 'w' };
  bench.alive.add(7);
  const worker = bench.worker(['t'], hello);
  const id = bench.enqueue(client, 't', { timeout_ms: 1000 });
  const ids = bench.execute(worker);
  bench.disconnect(worker);
  bench.pass(1500);
  const back = bench.worker(['t'], { ...hello, resume: [{ ...ids, job_id: id, state: 'running' }] });
  expect(bench.take(back, 'cancel_execution')).toMatchObject({ ...ids, reason: 'timeout' });
  bench.request(back, 'failed', { ...ids, error: { type: 'cancelled' } });
  expect(bench.status(client, id)).toMatchObject({ state: 'discarded', errors: [{ code: 5 }] });
});

test('unfinished jobs are listed page by page without a look into the history', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const ids = [1, 2, 3].map(() => bench.enqueue(client, 't'));
  const page = (cursor?: unknown) =>
    bench.request(client, 'inspect', { what: 'jobs', state: 'available', limit: 2, cursor });
  const first = page();
  expect(first).toMatchObject({ data: [{ id: ids[2] }, { id: ids[1] }], next_cursor: expect.any(String) });
  expect(page(first['next_cursor'])).toMatchObject({ data: [{ id: ids[0] }], next_cursor: null });
});
