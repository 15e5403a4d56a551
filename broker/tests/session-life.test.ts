/** Sessions, decided by the core alone: one job at a time, pinning, loss, closing, tombstones. docs/local-protocol.md, Sessions. */
import { expect, test } from 'vitest';
import { CoreBench } from './core-bench.js';

const TASK = 'reelbolt.video.v1';

function open(bench: CoreBench, client: number, id = 's1'): Record<string, unknown> {
  return bench.request(client, 'open_session', { session_id: id, task: TASK, labels: { owner: 'bridge' } });
}

function enqueueIn(
  bench: CoreBench,
  client: number,
  submission: string,
  more: Record<string, unknown> = {},
): Record<string, unknown> {
  return bench.request(client, 'enqueue', {
    task: TASK,
    args: { op: 'ffmpeg' },
    session_id: 's1',
    watch: true,
    options: { submission_id: submission, retries: 5 },
    ...more,
  });
}

test('opening twice answers the same session; another task, a closed and an unknown one have codes of their own', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const first = open(bench, client);
  expect(first).toMatchObject({
    type: 'session_opened',
    session: {
      session_id: 's1',
      state: 'open',
      dir: '/sessions/s1',
      labels: { owner: 'bridge' },
      running_job_id: null,
    },
  });
  expect(open(bench, client)['session']).toEqual(first['session']);
  expect(bench.request(client, 'open_session', { session_id: 's1', task: 'other' })).toMatchObject({
    error: { code: 'session_conflict' },
  });
  expect(enqueueIn(bench, client, 'x', { session_id: 'nope' })).toMatchObject({ error: { code: 'session_not_found' } });
  expect(bench.request(client, 'close_session', { session_id: 'nope' })).toMatchObject({
    error: { code: 'session_not_found' },
  });
  expect(bench.request(client, 'close_session', { session_id: 's1' })).toMatchObject({
    type: 'session_closed',
    stopped: true,
    session: { state: 'closed' },
  });
  expect(open(bench, client)).toMatchObject({ error: { code: 'session_closed' } });
  expect(enqueueIn(bench, client, 'x')).toMatchObject({ error: { code: 'session_closed' } });
});

test('a job of another task than the session’s is refused, also while one runs; what its ids mean stays', () => {
  const bench = new CoreBench();
  const client = bench.client();
  open(bench, client);
  const refused = { error: { code: 'session_conflict', message: expect.stringContaining(`for the task ${TASK};`) } };
  expect(enqueueIn(bench, client, 'op1', { task: 'other' })).toMatchObject(refused);
  const job = enqueueIn(bench, client, 'op1');
  expect(job).toMatchObject({ type: 'enqueued', job: { task: TASK } });
  expect(enqueueIn(bench, client, 'op2', { task: 'other' })).toMatchObject(refused);
  expect(enqueueIn(bench, client, 'op1', { task: 'other' })).toMatchObject({ job_id: job['job_id'], conflict: true });
  bench.request(client, 'close_session', { session_id: 's1' });
  expect(enqueueIn(bench, client, 'op3', { task: 'other' })).toMatchObject({ error: { code: 'session_closed' } });
});

test('one job at a time; the same id is answered with the same job, other arguments are a conflict and not an error', () => {
  const bench = new CoreBench();
  const client = bench.client();
  open(bench, client);
  const job = enqueueIn(bench, client, 'op1');
  expect(enqueueIn(bench, client, 'op2')).toMatchObject({ error: { code: 'session_busy' } });
  expect(enqueueIn(bench, client, 'op1')).not.toHaveProperty('conflict');
  const worker = bench.worker([TASK], {}, { [TASK]: { sessions: 'host' } });
  bench.request(worker, 'succeeded', { ...bench.execute(worker), result: { exitCode: 0 } });
  bench.take(client, 'job_settled');
  expect(enqueueIn(bench, client, 'op1', { args: { op: 'other' } })).toMatchObject({
    job_id: job['job_id'],
    conflict: true,
    job: { state: 'completed' },
  });
  expect(bench.take(client, 'job_settled')).toMatchObject({ job_id: job['job_id'], result: { exitCode: 0 } });
  expect(enqueueIn(bench, client, 'op2')).toMatchObject({ type: 'enqueued' });
});

test('an id of another session, or of a job without one, is no conflict but a refusal', () => {
  const bench = new CoreBench();
  const client = bench.client();
  open(bench, client);
  bench.enqueue(client, TASK, { submission_id: 'op1' });
  expect(enqueueIn(bench, client, 'op1')).toMatchObject({ error: { code: 'invalid_enqueue' } });
});

test('retries do not count in a session, and an interruption is final', () => {
  const bench = new CoreBench();
  const client = bench.client();
  open(bench, client);
  const worker = bench.worker([TASK], { pid: 1 }, { [TASK]: { sessions: 'host' } });
  const job = enqueueIn(bench, client, 'op1');
  bench.disconnect(worker);
  bench.pass(100);
  expect(bench.take(client, 'job_settled')).toMatchObject({
    job_id: job['job_id'],
    state: 'discarded',
    error: { type: 'executor_lost', retryable: true },
  });
  expect(bench.request(client, 'inspect', { what: 'session', id: 's1' })).toMatchObject({
    data: { state: 'open', running_job_id: null },
  });
});

test('a pinned session stays with its runtime and is lost with it; a host session goes on elsewhere', () => {
  const bench = new CoreBench();
  const client = bench.client();
  open(bench, client);
  const first = bench.worker([TASK], { runtime_id: 'a', max_concurrency: 5, pid: 1 });
  enqueueIn(bench, client, 'op1');
  bench.request(first, 'succeeded', { ...bench.execute(first), result: null });
  bench.disconnect(first);
  const second = bench.worker([TASK], { runtime_id: 'b', max_concurrency: 5 });
  const waiting = enqueueIn(bench, client, 'op2');
  expect(bench.has(second, 'execute')).toBe(false);
  bench.pass(15_100);
  expect(enqueueIn(bench, client, 'op3')).toMatchObject({ error: { code: 'session_lost' } });
  expect(bench.status(client, waiting['job_id'] as string)).toMatchObject({
    state: 'discarded',
    errors: [{ type: 'executor_lost' }],
  });
  expect(open(bench, client)).toMatchObject({ error: { code: 'session_lost' } });
  expect(bench.request(client, 'close_session', { session_id: 's1' })).toMatchObject({ type: 'session_closed' });
});

test('closing stops the running job, waits for its executor, then removes the directory', () => {
  const bench = new CoreBench();
  const client = bench.client();
  open(bench, client);
  const worker = bench.worker([TASK], {}, { [TASK]: { sessions: 'host' } });
  enqueueIn(bench, client, 'op1');
  const ids = bench.execute(worker);
  expect(bench.request(client, 'close_session', { session_id: 's1', grace_ms: 5000 })['type']).toBe('none');
  expect(bench.take(client, 'job_settled')).toMatchObject({ state: 'cancelled' });
  expect(bench.take(worker, 'cancel_execution')).toMatchObject({ reason: 'session_closed' });
  expect(enqueueIn(bench, client, 'op2')).toMatchObject({ error: { code: 'session_closed' } });
  bench.request(worker, 'failed', { ...ids, error: { type: 'cancelled' } });
  expect(bench.take(client, 'session_closed')).toMatchObject({ stopped: true });
});

test('an executor that does not stop in time does not hold a closing session', () => {
  const bench = new CoreBench();
  const client = bench.client();
  open(bench, client);
  const worker = bench.worker([TASK], {}, { [TASK]: { sessions: 'host' } });
  enqueueIn(bench, client, 'op1');
  const ids = bench.execute(worker);
  bench.request(client, 'close_session', { session_id: 's1', grace_ms: 300 });
  bench.pass(320);
  expect(bench.take(client, 'session_closed')).toMatchObject({ stopped: false });
  expect(bench.request(worker, 'succeeded', { ...ids, result: 1 })['type']).toBe('accepted');
});

test('work that outlived the close of its session is told to have stopped once its executor reports', () => {
  const bench = new CoreBench();
  const client = bench.client();
  const worker = bench.worker([TASK]);
  open(bench, client);
  enqueueIn(bench, client, 'a');
  const ids = bench.execute(worker);
  bench.request(client, 'close_session', { session_id: 's1', grace_ms: 0 });
  bench.pass(20);
  expect(bench.take(client, 'session_closed')).toMatchObject({ stopped: false });
  expect(bench.request(client, 'close_session', { session_id: 's1' })).toMatchObject({ stopped: false });
  bench.request(worker, 'failed', { ...ids, error: { type: 'cancelled' } });
  expect(bench.request(client, 'close_session', { session_id: 's1' })).toMatchObject({ stopped: true });
});

test('after a cancel the session is busy until the executor has really stopped', () => {
  const bench = new CoreBench();
  const client = bench.client();
  open(bench, client);
  const worker = bench.worker([TASK], { max_concurrency: 3 }, { [TASK]: { sessions: 'host' } });
  const job = enqueueIn(bench, client, 'op1');
  const ids = bench.execute(worker);
  bench.request(client, 'cancel', { job_id: job['job_id'] });
  expect(enqueueIn(bench, client, 'op2')).toMatchObject({ error: { code: 'session_busy' } });
  bench.request(worker, 'failed', { ...ids, error: { type: 'cancelled' } });
  expect(enqueueIn(bench, client, 'op2')).toMatchObject({ type: 'enqueued' });
});

test('the last 256 results are kept; an older id answers job_expired and never runs again, restart or not', () => {
  const bench = new CoreBench();
  let client = bench.client();
  open(bench, client);
  const declaration = { [TASK]: { sessions: 'host' } };
  let worker = bench.worker([TASK], {}, declaration);
  for (let n = 0; n < 257; n++) {
    enqueueIn(bench, client, `op${n}`);
    bench.request(worker, 'succeeded', { ...bench.execute(worker), result: n });
  }
  for (const round of ['before', 'after']) {
    expect([round, enqueueIn(bench, client, 'op0')]).toMatchObject([round, { error: { code: 'job_expired' } }]);
    expect(enqueueIn(bench, client, 'op1')).toMatchObject({ job: { state: 'completed' } });
    bench.crash();
    client = bench.client();
    worker = bench.worker([TASK], {}, declaration);
  }
  expect(bench.has(worker, 'execute')).toBe(false);
});

test('a session that was closing when the broker died is closed by the next one', () => {
  const bench = new CoreBench();
  const client = bench.client();
  open(bench, client);
  const worker = bench.worker([TASK], {}, { [TASK]: { sessions: 'host' } });
  enqueueIn(bench, client, 'op1');
  bench.execute(worker);
  bench.request(client, 'close_session', { session_id: 's1' });
  bench.crash();
  const again = bench.client();
  expect(bench.request(again, 'close_session', { session_id: 's1' })).toMatchObject({
    type: 'session_closed',
    session: { state: 'closed' },
  });
});
