/** Pinned sessions and the process that holds them; lost sessions that nobody closes. Decided by the core alone. */
import { expect, test } from 'vitest';
import { CoreBench } from './core-bench.js';

const TASK = 'media.v1';

function open(bench: CoreBench, client: number, id = 's1'): Record<string, unknown> {
  return bench.request(client, 'open_session', { session_id: id, task: TASK });
}

function state(bench: CoreBench, client: number, id = 's1'): unknown {
  return (bench.request(client, 'inspect', { what: 'session', id })['data'] as { state: unknown }).state;
}

function enqueueIn(bench: CoreBench, client: number, name: string, id = 's1'): Record<string, unknown> {
  const options = { submission_id: `${id}${name}` };
  return bench.request(client, 'enqueue', { task: TASK, args: {}, session_id: id, watch: true, options });
}

/** A session that process `pid` of runtime `w` holds, because it ran its first job. */
function pinned(bench: CoreBench, client: number, pid: number | undefined, id = 's1'): number {
  if (pid !== undefined) bench.alive.add(pid);
  const worker = bench.worker([TASK], { runtime_id: 'w', max_concurrency: 3, ...(pid === undefined ? {} : { pid }) });
  open(bench, client, id);
  enqueueIn(bench, client, 'first', id);
  bench.request(worker, 'succeeded', { ...bench.execute(worker), result: 1 });
  return worker;
}

test('a new process with the runtime id of a dead one does not get its pinned session: it is lost at once', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const first = pinned(bench, client, 7);
  bench.alive.delete(7);
  bench.disconnect(first);
  bench.alive.add(8);
  const second = bench.worker([TASK], { runtime_id: 'w', max_concurrency: 3, pid: 8 });
  const job = enqueueIn(bench, client, 'second');
  expect(bench.has(second, 'execute')).toBe(false);
  bench.pass(100);
  expect(state(bench, client)).toBe('lost');
  expect(bench.status(client, job['job_id'] as string)).toMatchObject({
    state: 'discarded',
    errors: [{ type: 'executor_lost' }],
  });
  expect(bench.has(second, 'execute')).toBe(false);
});

test('two living processes may share a runtime id: the session stays with the one that holds it', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const holder = pinned(bench, client, 7);
  bench.alive.add(8);
  const other = bench.worker([TASK], { runtime_id: 'w', max_concurrency: 3, pid: 8 });
  enqueueIn(bench, client, 'second');
  expect(bench.has(other, 'execute')).toBe(false);
  bench.request(holder, 'succeeded', { ...bench.execute(holder), result: 2 });
  bench.disconnect(other);
  bench.pass(20_000);
  expect(state(bench, client)).toBe('open');
});

test('the same process on a new connection goes on with its session; one that stays away loses it when the window is over', () => {
  const bench = new CoreBench();
  const client = bench.client();
  bench.disconnect(pinned(bench, client, 7));
  bench.pass(14_000);
  const again = bench.worker([TASK], { runtime_id: 'w', max_concurrency: 3, pid: 7 });
  bench.pass(20_000);
  enqueueIn(bench, client, 'second');
  bench.request(again, 'succeeded', { ...bench.execute(again), result: 2 });
  expect(state(bench, client)).toBe('open');
  bench.disconnect(again);
  bench.pass(14_900);
  expect(state(bench, client)).toBe('open');
  bench.pass(200);
  expect(state(bench, client)).toBe('lost');
});

test('across a restart of the broker: the living process keeps its session, a successor with its name does not', () => {
  for (const survives of [true, false]) {
    const bench = new CoreBench();
    pinned(bench, bench.client(), 7);
    if (!survives) bench.alive.delete(7);
    bench.crash();
    const client = bench.client();
    const pid = survives ? 7 : 8;
    bench.alive.add(pid);
    const worker = bench.worker([TASK], { runtime_id: 'w', max_concurrency: 3, pid });
    const job = enqueueIn(bench, client, 'second');
    bench.pass(100);
    expect([survives, bench.has(worker, 'execute')]).toEqual([survives, survives]);
    expect(state(bench, client)).toBe(survives ? 'open' : 'lost');
    if (!survives) expect(bench.status(client, job['job_id'] as string)).toMatchObject({ state: 'discarded' });
  }
});

test('a runtime that names no process is known by its runtime id alone', () => {
  const bench = new CoreBench();
  const client = bench.client();
  bench.disconnect(pinned(bench, client, undefined));
  bench.pass(1000);
  const again = bench.worker([TASK], { runtime_id: 'w', max_concurrency: 3, pid: 9 });
  enqueueIn(bench, client, 'second');
  expect(bench.has(again, 'execute')).toBe(true);
});

/** Loses a session: its process dies. */
function lose(bench: CoreBench, client: number, id: string): void {
  const worker = pinned(bench, client, 7, id);
  bench.alive.delete(7);
  bench.disconnect(worker);
  bench.pass(100);
  expect(state(bench, client, id)).toBe('lost');
}

test('a lost session that nobody closes is closed after its time, restart or not, and its directory goes', () => {
  const bench = new CoreBench({ lostSessionMs: 60_000 });
  lose(bench, bench.client(), 's1');
  bench.pass(40_000);
  bench.crash(1000);
  let client = bench.client();
  expect(state(bench, client)).toBe('lost');
  bench.pass(18_000);
  expect(state(bench, client)).toBe('lost');
  bench.pass(2000);
  client = bench.client();
  expect(bench.events.filter(({ event }) => event === 'session.forgotten')).toHaveLength(1);
  expect(state(bench, client)).toBe('closed');
  expect(bench.core.sessions.size).toBe(0);
  expect(open(bench, client)).toMatchObject({ error: { code: 'session_closed' } });
  expect(bench.core.durations.next()).toBeNull();
});

test('of lost sessions only so many are kept, the latest; they do not keep a new one out', () => {
  const bench = new CoreBench({ maxLostSessions: 2, maxSessions: 3 });
  const client = bench.client();
  for (const id of ['a', 'b', 'c']) lose(bench, client, id);
  expect(['a', 'b', 'c'].map((id) => state(bench, client, id))).toEqual(['closed', 'lost', 'lost']);
  for (const id of ['d', 'e', 'f']) expect(open(bench, client, id)).toMatchObject({ type: 'session_opened' });
  expect(['b', 'c'].map((id) => state(bench, client, id))).toEqual(['closed', 'closed']);
  expect(open(bench, client, 'g')).toMatchObject({ error: { code: 'capacity', reason: 'sessions' } });
});

test('a lost session that is closed leaves nothing behind', () => {
  const bench = new CoreBench();
  const client = bench.client();
  lose(bench, client, 's1');
  expect(bench.request(client, 'close_session', { session_id: 's1' })).toMatchObject({ type: 'session_closed' });
  expect([bench.core.lostSessions.size, bench.core.durations.next()]).toEqual([0, null]);
});

test('an executor is never given more than it can name when it comes back', () => {
  const bench = new CoreBench({ queueConcurrency: 65_535 });
  const client = bench.client();
  const hello = { runtime_id: 'w', pid: 7, max_concurrency: 65_535 };
  bench.alive.add(7);
  const worker = bench.worker([TASK], hello, { [TASK]: { sessions: 'host' } });
  const jobs = Array.from({ length: 1100 }, () => bench.enqueue(client, TASK));
  const orders: Record<string, unknown>[] = [];
  while (bench.has(worker, 'execute')) orders.push(bench.take(worker, 'execute'));
  expect(orders).toHaveLength(1024);
  bench.disconnect(worker);
  const resume = orders.map(({ execution_id, reservation_id, job_id }) => ({
    execution_id,
    reservation_id,
    job_id,
    state: 'running',
  }));
  const back = bench.worker([TASK], { ...hello, resume });
  for (const [n, order] of orders.entries()) {
    const { execution_id, reservation_id } = order;
    bench.request(back, 'succeeded', { execution_id, reservation_id, result: n });
  }
  for (const [n, id] of jobs.slice(0, 1024).entries()) {
    expect(bench.request(client, 'result', { job_id: id })['result']).toBe(n);
  }
  expect(bench.core.counters.interrupted).toBe(0);
  const plain = bench.connect({ mode: 'worker', max_concurrency: 65_535 });
  expect(bench.core.peers.get(plain)?.maxConcurrency).toBe(65_535);
  expect(bench.core.peers.get(back)?.maxConcurrency).toBe(1024);
});
