/** The life of a job, decided by the core alone: order, capacity, retries, time limits, interruptions, refusals, cancels. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { JOB_STATES, type JobState } from '../src/core/index.js';
import { JOB_TRANSITIONS, moveJob } from '../src/core/job.js';
import { CoreBench } from './core-bench.js';

test('every cell of the transition table: allowed moves are made, all others throw', () => {
  const allowed = new Set([
    'scheduled available',
    'scheduled cancelled',
    'scheduled discarded',
    'available executing',
    'available cancelled',
    'available discarded',
    'executing completed',
    'executing retryable',
    'executing discarded',
    'executing cancelled',
    'executing available',
    'retryable available',
    'retryable cancelled',
    'retryable discarded',
  ]); // prettier-ignore
  for (const from of JOB_STATES) {
    for (const to of JOB_STATES) {
      const job = { id: 'j', state: from as JobState } as Parameters<typeof moveJob>[0];
      if (allowed.has(`${from} ${to}`)) {
        moveJob(job, to);
        expect(job.state).toBe(to);
      } else expect(() => moveJob(job, to)).toThrow('is not a transition');
      expect(JOB_TRANSITIONS[from].includes(to)).toBe(allowed.has(`${from} ${to}`));
    }
  }
});

test('docs/local-protocol.md shows every move of a job, and no other', () => {
  const page = readFileSync(new URL('../../docs/local-protocol.md', import.meta.url), 'utf8');
  const rows = page.split('\n| from | to | when |\n')[1]?.split('\n\n')[0]?.split('\n').slice(1) ?? [];
  const states = (cell: string | undefined): string[] =>
    [...(cell ?? '').matchAll(/`(\w+)`/g)].map(([, state]) => state ?? '');
  const shown = rows.flatMap((row) => {
    const [from, to] = row.split(' | ');
    return states(from).flatMap((before) => states(to).map((after) => `${before} ${after}`));
  });
  const moves = JOB_STATES.flatMap((from) => JOB_TRANSITIONS[from].map((to) => `${from} ${to}`));
  expect(shown.sort()).toEqual(moves.sort());
});

test('the oldest job goes first across task names, and a job nobody serves blocks nobody', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const order = ['z.v1', 'nobody.v1', 'a.v1', 'z.v1', 'a.v1'].map((task) => bench.enqueue(client, task));
  const worker = bench.worker(['a.v1', 'z.v1']);
  const ran: unknown[] = [];
  for (let i = 0; i < 4; i++) {
    const execute = bench.take(worker, 'execute');
    ran.push(execute['job_id']);
    bench.request(worker, 'succeeded', {
      reservation_id: execute['reservation_id'],
      execution_id: execute['execution_id'],
      result: null,
    });
  }
  expect(ran).toEqual([order[0], order[2], order[3], order[4]]);
  expect(bench.status(client, order[1] as string)).toMatchObject({ state: 'available', attempt: 0 });
});

test('the executor with the fewest executions gets the job, then the one with the lower runtime id', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const second = bench.worker(['t'], { runtime_id: 'b', max_concurrency: 2 });
  const first = bench.worker(['t'], { runtime_id: 'a', max_concurrency: 2 });
  for (let i = 0; i < 3; i++) bench.enqueue(client, 't');
  expect([first, second].map((id) => (bench.sent.get(id) ?? []).filter((m) => m.type === 'execute').length)).toEqual([
    2, 1,
  ]);
});

test('a queue runs ten jobs at once unless it is configured otherwise; a job for any queue runs', () => {
  const bench = new CoreBench({ queues: { narrow: 1 } });
  const client = bench.client();
  const worker = bench.worker(['t'], { max_concurrency: 100 });
  for (let i = 0; i < 12; i++) bench.enqueue(client, 't', { queue: 'any' });
  for (let i = 0; i < 3; i++) bench.enqueue(client, 't', { queue: 'narrow' });
  const queues = (bench.sent.get(worker) ?? []).map((message) => message['queue']);
  expect(queues.filter((queue) => queue === 'any')).toHaveLength(10);
  expect(queues.filter((queue) => queue === 'narrow')).toHaveLength(1);
});

test.each([
  [1, 1000],
  [2, 2000],
  [3, 4000],
  [4, 8000],
  [5, 16_000],
  [6, 32_000],
  [7, 60_000],
  [8, 60_000],
])('after attempt %i the next one waits %i ms', (attempt, delay) => {
  const bench = new CoreBench();
  const client = bench.client();
  const worker = bench.worker(['t']);
  const id = bench.enqueue(client, 't', { retries: 20, timeout_ms: 3_600_000 });
  for (let n = 1; n < attempt; n++) {
    bench.request(worker, 'failed', { ...bench.execute(worker), error: { type: 'E' } });
    bench.pass(70_000);
  }
  bench.request(worker, 'failed', { ...bench.execute(worker), error: { type: 'E', message: 'again' } });
  expect(bench.status(client, id)).toMatchObject({ state: 'retryable', attempt, scheduled_at: bench.wall + delay });
  bench.pass(delay - 20);
  expect(bench.has(worker, 'execute')).toBe(false);
  bench.pass(40);
  expect(bench.take(worker, 'execute')).toMatchObject({ attempt: attempt + 1 });
}); // prettier-ignore

test('a failure without a retry left discards the job and keeps what the executor said', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const worker = bench.worker(['t']);
  const id = bench.enqueue(client, 't', {}, { watch: true });
  bench.request(worker, 'failed', {
    ...bench.execute(worker),
    error: { type: 'stage_failed', message: 'HTTP 403', retryable: true, details: { status: 403 } },
  });
  const error = { type: 'stage_failed', message: 'HTTP 403', retryable: true, details: { status: 403 } };
  expect(bench.take(client, 'job_settled')).toMatchObject({ job_id: id, state: 'discarded', error });
  expect(bench.request(client, 'result', { job_id: id })).toMatchObject({
    type: 'error',
    error: { code: 'task_failed', error },
  });
  expect(bench.status(client, id)).toMatchObject({
    errors: [{ code: 1, version: 1, type: 'stage_failed', message: 'HTTP 403' }],
  });
});

test('at its time limit a job of the extension is stopped, and settled when its executor reports or the grace is over', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const worker = bench.worker(['t'], { max_concurrency: 2 });
  const first = bench.enqueue(client, 't', { timeout_ms: 1000 });
  const second = bench.enqueue(client, 't', { timeout_ms: 1000 });
  const ids = bench.execute(worker);
  bench.execute(worker);
  bench.pass(1020);
  expect(bench.take(worker, 'cancel_execution')).toMatchObject({ ...ids, reason: 'timeout' });
  expect(bench.status(client, first)['state']).toBe('executing');
  bench.request(worker, 'failed', {
    ...ids,
    error: { type: 'cancelled', message: 'stopped', details: { killed: true } },
  });
  expect(bench.request(client, 'result', { job_id: first })).toMatchObject({
    error: { error: { type: 'timeout', details: { killed: true } } },
  });
  bench.pass(9950);
  expect(bench.status(client, second)['state']).toBe('executing');
  bench.pass(100);
  expect(bench.status(client, second)).toMatchObject({ state: 'discarded', errors: [{ code: 5 }] });
});

test('on a plain connection a time limit settles at once, but the slot stays taken until the worker reports', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const worker = bench.plainWorker(['t']);
  const id = bench.enqueue(client, 't', { timeout_ms: 500 });
  const next = bench.enqueue(client, 't');
  const ids = bench.execute(worker);
  bench.pass(520);
  expect(bench.take(worker, 'cancel_execution')).not.toHaveProperty('reason');
  expect(bench.status(client, id)['state']).toBe('discarded');
  expect(bench.status(client, next)['state']).toBe('available');
  expect(bench.request(worker, 'succeeded', { ...ids, result: 1 })['type']).toBe('accepted');
  expect(bench.status(client, id)['state']).toBe('discarded');
  expect(bench.status(client, next)['state']).toBe('executing');
});

test('a plain worker that vanishes is an interruption: same attempt again after the backoff, and a poison job ends', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const id = bench.enqueue(client, 't', { retries: 1 });
  for (let n = 1; n <= 3; n++) {
    const worker = bench.plainWorker(['t']);
    expect(bench.status(client, id)).toMatchObject({ state: 'executing', attempt: 1 });
    bench.disconnect(worker);
    if (n < 3) {
      expect(bench.status(client, id)).toMatchObject({ state: 'retryable', errors: [{ code: 7 }] });
      bench.pass(1300);
    }
  }
  expect(bench.status(client, id)).toMatchObject({
    state: 'discarded',
    errors: [{ code: 7, type: 'interrupted_too_often' }],
  });
});

test('an executor of the extension that is cut off may come back within its window and report', () => {
  const bench = new CoreBench();
  bench.alive.add(4711);
  const client = bench.client();
  const worker = bench.worker(['t'], { runtime_id: 'x', pid: 4711 });
  const id = bench.enqueue(client, 't');
  const ids = bench.execute(worker);
  bench.request(worker, 'started', ids);
  bench.disconnect(worker);
  bench.pass(14_000);
  expect(bench.status(client, id)['state']).toBe('executing');
  const again = bench.connect({
    mode: 'worker',
    runtime_id: 'x',
    pid: 4711,
    max_concurrency: 1,
    extensions: ['reelhost.1'],
    resume: [{ ...ids, job_id: id, state: 'running' }],
  });
  bench.request(again, 'register_tasks', { tasks: ['t'] });
  bench.enqueue(client, 't');
  expect(bench.has(again, 'execute')).toBe(false);
  expect(bench.request(again, 'succeeded', { ...ids, result: 7 })['type']).toBe('accepted');
  expect(bench.request(client, 'result', { job_id: id })).toMatchObject({ result: 7 });
  expect(bench.has(again, 'execute')).toBe(true);
});

test('one that does not come back loses its execution: executor_lost, at once when its process is gone', () => {
  const bench = new CoreBench();
  const client = bench.client();
  bench.alive.add(1);
  const living = bench.worker(['a'], { pid: 1 });
  const dead = bench.worker(['b'], { pid: 2 });
  const a = bench.enqueue(client, 'a');
  const b = bench.enqueue(client, 'b');
  bench.disconnect(living);
  bench.disconnect(dead);
  bench.pass(100);
  expect(bench.status(client, a)['state']).toBe('executing');
  expect(bench.request(client, 'result', { job_id: b })).toMatchObject({
    error: { error: { type: 'executor_lost', retryable: true } },
  });
  bench.pass(15_000);
  expect(bench.status(client, a)).toMatchObject({ state: 'discarded', errors: [{ type: 'executor_lost' }] });
});

test('the same process that comes back without an execution it never began gets it again, at no cost', () => {
  const bench = new CoreBench();
  bench.alive.add(5);
  const client = bench.client();
  const worker = bench.worker(['t'], { runtime_id: 'x', pid: 5 });
  const id = bench.enqueue(client, 't');
  bench.execute(worker);
  bench.disconnect(worker);
  const again = bench.worker(['t'], { runtime_id: 'x', pid: 5 });
  expect(bench.take(again, 'execute')).toMatchObject({ job_id: id, attempt: 1 });
});

test('an idempotent op is run again without anyone noticing, but not for ever', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const args = { args: { op: 'stat' } };
  const id = bench.enqueue(client, 't', {}, args);
  for (let n = 1; n <= 3; n++) {
    const worker = bench.worker(['t'], { pid: 9 }, { t: { idempotent_ops: ['stat'] } });
    expect(bench.take(worker, 'execute')).toMatchObject({ job_id: id, attempt: 1 });
    bench.disconnect(worker);
    bench.pass(100);
  }
  expect(bench.status(client, id)).toMatchObject({ state: 'discarded', errors: [{ type: 'interrupted_too_often' }] });
});

test.each([
  [{ type: 'ServerError', message: 'executor capacity exceeded' }],
  [{ type: 'TaskNotRegistered', message: 'no t' }],
])('a refusal without started costs no attempt: %o', (error) => {
  const bench = new CoreBench();
  const client = bench.client();
  const worker = bench.plainWorker(['t'], { runtime_id: 'a' });
  const id = bench.enqueue(client, 't');
  expect(bench.request(worker, 'failed', { ...bench.execute(worker), error })['type']).toBe('accepted');
  expect(bench.status(client, id)).toMatchObject({ state: 'available', attempt: 0 });
  const other = bench.plainWorker(['t'], { runtime_id: 'b' });
  expect(bench.take(other, 'execute')['job_id']).toBe(id);
});

test('cancel is durable at once, the slot is free when the executor has stopped, and a waiting cancel says so', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const worker = bench.worker(['t']);
  const id = bench.enqueue(client, 't', {}, { watch: true });
  const ids = bench.execute(worker);
  expect(bench.request(client, 'cancel', { job_id: id, wait_ms: 5000 })['type']).toBe('none');
  expect(bench.take(client, 'job_settled')).toMatchObject({
    job_id: id,
    state: 'cancelled',
    error: { type: 'cancelled' },
  });
  expect(bench.take(worker, 'cancel_execution')).toMatchObject({ ...ids, reason: 'cancel' });
  bench.request(worker, 'failed', { ...ids, error: { type: 'cancelled' } });
  expect(bench.take(client, 'cancelled')).toMatchObject({ status: 'cancelled', stopped: true });
  expect(bench.request(client, 'cancel', { job_id: id })).toMatchObject({ type: 'cancelled', stopped: true });
  expect(bench.request(client, 'result', { job_id: id })).toMatchObject({ error: { code: 'job_cancelled' } });
});

test('a waiting cancel answers stopped: false when the time is over', () => {
  const bench = new CoreBench();
  const client = bench.client();
  bench.worker(['t']);
  const id = bench.enqueue(client, 't');
  bench.request(client, 'cancel', { job_id: id, wait_ms: 200 });
  bench.pass(220);
  expect(bench.take(client, 'cancelled')).toMatchObject({ status: 'cancelled', stopped: false });
});

test('late, repeated and foreign reports: accepted, accepted, unknown_execution', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const worker = bench.worker(['t']);
  const id = bench.enqueue(client, 't');
  const ids = bench.execute(worker);
  bench.request(worker, 'succeeded', { ...ids, result: 1 });
  expect(bench.request(worker, 'succeeded', { ...ids, result: 2 })['type']).toBe('accepted');
  expect(bench.request(client, 'result', { job_id: id })).toMatchObject({ result: 1 });
  bench.crash();
  const after = bench.worker(['t']);
  expect(bench.request(after, 'failed', { ...ids, error: { message: 'late' } })['type']).toBe('accepted');
  const foreign = { reservation_id: 'r', execution_id: 'e' };
  expect(bench.request(after, 'succeeded', { ...foreign, result: 1 })).toMatchObject({
    error: { code: 'unknown_execution' },
  });
});

test('a wall clock that jumps an hour either way disturbs neither delays nor retries nor time limits', () => {
  for (const jump of [3_600_000, -3_600_000]) {
    const bench = new CoreBench();
    const client = bench.client();
    const worker = bench.worker(['t']);
    const delayed = bench.enqueue(client, 't', { delay_ms: 5000 });
    bench.pass(1000, 1000 + jump);
    expect(bench.status(client, delayed)['state']).toBe('scheduled');
    bench.pass(4010);
    bench.request(worker, 'succeeded', { ...bench.execute(worker), result: null });
    const limited = bench.enqueue(client, 't', { timeout_ms: 2000, retries: 1 });
    const ids = bench.execute(worker);
    bench.pass(1000, 1000 + jump);
    expect(bench.status(client, limited)['state']).toBe('executing');
    bench.pass(1010);
    bench.request(worker, 'failed', { ...ids, error: { type: 'cancelled' } });
    expect(bench.status(client, limited)['state']).toBe('retryable');
    bench.pass(1010, 1010 - jump);
    expect(bench.status(client, limited)['state']).toBe('executing');
  }
});

test('run_at follows the wall clock, also when it is set', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const worker = bench.worker(['t']);
  bench.enqueue(client, 't', { run_at: bench.wall + 3_600_000 });
  bench.pass(10, 3_600_020);
  expect(bench.has(worker, 'execute')).toBe(true);
});

test('after a restart: waiting jobs wait, running ones may be resumed, delays go on', () => {
  const bench = new CoreBench();
  bench.alive.add(1);
  const worker = bench.worker(['t'], { runtime_id: 'x', pid: 1 });
  const client = bench.client();
  const running = bench.enqueue(client, 't', { timeout_ms: 60_000 });
  const waiting = bench.enqueue(client, 't');
  const delayed = bench.enqueue(client, 't', { delay_ms: 10_000 });
  const ids = bench.execute(worker);
  bench.crash(4000);
  const again = bench.connect({
    mode: 'worker',
    runtime_id: 'x',
    pid: 1,
    max_concurrency: 1,
    extensions: ['reelhost.1'],
    resume: [{ ...ids, job_id: running, state: 'finished' }],
  });
  bench.request(again, 'register_tasks', { tasks: ['t'] });
  const observer = bench.client();
  expect(bench.request(again, 'succeeded', { ...ids, result: 'once' })['type']).toBe('accepted');
  expect(bench.request(observer, 'result', { job_id: running })).toMatchObject({ result: 'once' });
  expect(bench.take(again, 'execute')['job_id']).toBe(waiting);
  expect(bench.status(observer, delayed)['state']).toBe('scheduled');
  bench.pass(6020);
  expect(bench.status(observer, delayed)['state']).toBe('available');
});

test('equal submissions are one job, a delay is compared as it was asked for, another definition is refused', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const enqueue = (more: Record<string, unknown>) =>
    bench.request(client, 'enqueue', {
      task: 't',
      args: { a: 1, b: [2] },
      options: { submission_id: 's', delay: 1.5 },
      ...more,
    });
  const first = enqueue({});
  bench.pass(700);
  expect(enqueue({})).toMatchObject({ type: 'enqueued', job_id: first['job_id'] });
  expect(enqueue({ args: { b: [2], a: 1 } })).toMatchObject({ type: 'enqueued' });
  expect(enqueue({ args: { a: 2, b: [2] } })).toMatchObject({ error: { code: 'invalid_enqueue' } });
  expect(enqueue({ task: 'u' })).toMatchObject({ error: { code: 'invalid_enqueue' } });
  expect(enqueue({ options: { submission_id: 's', delay: 1.6 } })).toMatchObject({
    error: { code: 'invalid_enqueue' },
  });
});

test('a job whose secrets a restart has lost waits for them, and ends when they do not come', () => {
  const bench = new CoreBench();
  bench.client();
  const client = bench.client();
  const secrets = { secrets: { s0: 'x' } };
  const a = bench.enqueue(client, 't', { submission_id: 'a' }, secrets);
  const b = bench.enqueue(client, 't', { submission_id: 'b' }, secrets);
  bench.crash();
  const worker = bench.worker(['t'], { max_concurrency: 5 });
  expect(bench.has(worker, 'execute')).toBe(false);
  const again = bench.client();
  bench.enqueue(again, 't', { submission_id: 'a' }, secrets);
  expect(bench.take(worker, 'execute')['job_id']).toBe(a);
  bench.pass(60_100);
  expect(bench.status(again, b)).toMatchObject({ state: 'discarded', errors: [{ type: 'secrets_lost' }] });
});
