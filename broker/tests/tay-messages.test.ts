/** Every message and every error code of Tay v1, as a plain connection meets them. Tay's local executor protocol v1, sections 2 and 3. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BrokerHome } from './broker-process.js';
import { frame, type Message, RawPeer } from './raw-peer.js';

const home = new BrokerHome();
let peer: RawPeer;

beforeAll(async () => {
  await home.start();
  peer = await RawPeer.connect(home.socket);
  await peer.request('hello', { mode: 'embedded', runtime_id: 'both', max_concurrency: 4 });
});
afterAll(async () => {
  await peer.close();
  await home.remove();
});

const code = (message: Message): unknown => (message['error'] as { code: string } | undefined)?.code;
const hello = { mode: 'worker', runtime_id: 'x', max_concurrency: 1 };
const UNKNOWN_JOB = 'f'.repeat(32);

test.each([
  ['enqueue', {}],
  ['register_tasks', { tasks: [] }],
  ['heartbeat', {}],
])('before hello %s is answered hello_required and the connection stays', async (type, fields) => {
  const fresh = await RawPeer.connect(home.socket);
  expect(code(await fresh.request(type, { task: 't', args: {}, ...fields }))).toBe('hello_required');
  for (const bad of [
    { mode: 'boss' },
    { runtime_id: '' },
    { runtime_id: 'x'.repeat(129) },
    { max_concurrency: 0 },
    { max_concurrency: 65_536 },
    { mode: 'client' },
  ]) {
    expect([bad, code(await fresh.request('hello', { ...hello, ...bad }))]).toEqual([bad, 'invalid_hello']);
  }
  expect((await fresh.request('hello', hello)).type).toBe('hello_ok');
  expect(code(await fresh.request('hello', hello))).toBe('already_hello');
  expect(code(await fresh.request('hello', { mode: 'nobody' }))).toBe('already_hello');
  await fresh.close();
});

test('tasks: registered, unregistered, refused', async () => {
  expect(await peer.request('register_tasks', { tasks: [] })).toMatchObject({ type: 'tasks_registered', tasks: [] });
  expect(await peer.request('register_tasks', { tasks: ['b', 'a'] })).toMatchObject({ tasks: ['b', 'a'] });
  expect(await peer.request('unregister_tasks', { tasks: ['b', 'never'] })).toMatchObject({
    type: 'tasks_unregistered',
    tasks: ['b', 'never'],
  });
  for (const tasks of [
    undefined,
    'a',
    ['a', 'a'],
    [''],
    ['a\0'],
    ['ü'.repeat(128)],
    Array.from({ length: 257 }, (_, n) => `t${n}`),
  ]) {
    expect(code(await peer.request('register_tasks', { tasks }))).toBe('invalid_tasks');
  }
  const client = await RawPeer.connect(home.socket);
  await client.request('hello', { mode: 'client', runtime_id: 'c' });
  expect(code(await client.request('register_tasks', { tasks: ['a'] }))).toBe('client_cannot_execute');
  await client.close();
  expect((await peer.request('heartbeat')).type).toBe('heartbeat_ok');
  expect(code(await peer.request('register_schedules', {}))).toBe('bulk_scheduling_unsupported');
});

test.each<[string, Record<string, unknown>]>([
  ['no task', { task: undefined }],
  ['args that are no object', { args: [] }],
  ['args missing', { args: undefined }],
  ['options that are no object', { options: 3 }],
  ['an unknown option', { options: { priority: 1 } }],
  ['a bad id', { options: { id: 'A'.repeat(32) } }],
  ['an all-zero id', { options: { id: '0'.repeat(32) } }],
  ['id and submission_id', { options: { id: 'a'.repeat(32), submission_id: 's' } }],
  ['a long submission_id', { options: { submission_id: 'x'.repeat(129) } }],
  ['two delays', { options: { delay: 1, delay_ms: 1 } }],
  ['delay and run_at', { options: { delay: 1, run_at: 1 } }],
  ['a negative delay', { options: { delay: -1 } }],
  ['too many retries', { options: { retries: 65_535 } }],
  ['a fraction of a retry', { options: { retries: 0.5 } }],
  ['timeout zero', { options: { timeout: 0 } }],
  ['timeout of more than a day', { options: { timeout: 86_401 } }],
  ['two timeouts', { options: { timeout: 1, timeout_ms: 1 } }],
  ['another backoff', { options: { backoff: 'linear' } }],
  ['an empty queue', { options: { queue: '' } }],
])('enqueue with %s is invalid_enqueue', async (_name, fields) => {
  expect(code(await peer.request('enqueue', { task: 't', args: {}, ...fields }))).toBe('invalid_enqueue');
});

test.each([
  ['python-interop-submission', '5c7e3bd82fedaf28aaa0ce9a171bb577'],
  ['a', '9b120abf30861b8423b982580ee5216b'],
  ['ключ-1', '4d07e0bb7c493c57da3e55dc06f12fda'],
  ['x'.repeat(128), 'db25d9d81f46b179a927b02dd76ff1bc'],
])('submission_id %s makes job %s', async (submission, id) => {
  const enqueued = await peer.request('enqueue', {
    task: 'unserved',
    args: { n: null },
    options: { submission_id: submission, delay: null },
  });
  expect(enqueued['job_id']).toBe(id);
  expect(
    await peer.request('enqueue', { task: 'unserved', args: { n: null }, options: { submission_id: submission } }),
  ).toMatchObject({ job_id: id });
  expect(
    code(await peer.request('enqueue', { task: 'other', args: { n: null }, options: { submission_id: submission } })),
  ).toBe('invalid_enqueue');
});

test('a job as it is shown: scheduled, available, cancelled', async () => {
  const later = await peer.request('enqueue', {
    task: 'unserved',
    args: { a: 1 },
    options: { delay: 60, retries: 2, queue: 'q', id: 'b'.repeat(32) },
  });
  expect(later).toMatchObject({
    job_id: 'b'.repeat(32),
    job: {
      id: 'b'.repeat(32),
      task: 'unserved',
      args: { a: 1 },
      state: 'scheduled',
      attempt: 0,
      max_attempts: 3,
      queue: 'q',
      completed_at: null,
      errors: [],
    },
  });
  const due = (later['job'] as { scheduled_at: number }).scheduled_at;
  expect(Math.abs(due - Date.now() - 60_000)).toBeLessThan(5000);
  expect(await peer.request('enqueue', { task: 'unserved', args: {}, options: { run_at: 5 } })).toMatchObject({
    job: { state: 'available' },
  });
  const id = later['job_id'];
  expect(code(await peer.request('result', { job_id: id }))).toBe('result_not_ready');
  expect(await peer.request('cancel', { job_id: id })).toMatchObject({
    type: 'cancelled',
    status: 'cancelled',
    job: { state: 'cancelled', scheduled_at: null },
  });
  expect(await peer.request('cancel', { job_id: id })).toMatchObject({ type: 'cancelled' });
  expect(code(await peer.request('result', { job_id: id }))).toBe('job_cancelled');
});

test('jobs that are not there, or named badly', async () => {
  for (const type of ['status', 'result', 'cancel']) {
    expect(code(await peer.request(type, { job_id: UNKNOWN_JOB }))).toBe('not_found');
    for (const job_id of [undefined, 5, 'x', UNKNOWN_JOB.toUpperCase(), '0'.repeat(32)]) {
      expect(code(await peer.request(type, { job_id }))).toBe('invalid_job_id');
    }
  }
});

test('reports: accepted twice, refused when they are foreign or shapeless', async () => {
  await peer.request('register_tasks', { tasks: ['work'] });
  const { job_id } = await peer.request('enqueue', { task: 'work', args: {} });
  const { ids } = await peer.execute();
  expect((await peer.request('started', ids)).type).toBe('accepted');
  expect((await peer.request('started', ids)).type).toBe('accepted');
  expect(code(await peer.request('started', { ...ids, execution_id: '' }))).toBe('invalid_execution');
  for (const foreign of [
    { reservation_id: 'r', execution_id: 'e' },
    { ...ids, reservation_id: 'r' },
    { ...ids, execution_id: 'e' },
  ]) {
    expect(code(await peer.request('succeeded', foreign))).toBe('unknown_execution');
  }
  for (const error of [undefined, {}, { type: 5 }, { type: 'x'.repeat(129) }]) {
    expect(code(await peer.request('failed', { ...ids, error }))).toBe('invalid_failure');
  }
  expect((await peer.request('succeeded', ids)).type).toBe('accepted');
  expect(await peer.request('result', { job_id })).toMatchObject({ type: 'result', result: null });
  expect((await peer.request('failed', { ...ids, error: { message: 'late' } })).type).toBe('accepted');
  expect(code(await peer.request('cancel', { job_id }))).toBe('cancel_rejected');
});

test('results and errors that are too large, too deep or too many settle the job and keep the worker', async () => {
  await peer.request('register_tasks', { tasks: ['big'] });
  const deep = '['.repeat(40) + ']'.repeat(40);
  const cases: [string, (ids: Record<string, unknown>) => string, string][] = [
    ['succeeded', () => `"result":"${'x'.repeat(65_535)}"`, 'result_too_large'],
    ['succeeded', () => `"result":${deep}`, 'result_invalid'],
    ['succeeded', () => `"result":[${'0,'.repeat(10_000)}0]`, 'result_invalid'],
    ['failed', () => `"error":{"message":"${'x'.repeat(8192)}"}`, 'error_too_large'],
  ];
  for (const [type, body, expected] of cases) {
    const { job_id } = await peer.request('enqueue', { task: 'big', args: {} });
    const { ids } = await peer.execute();
    peer.sendText(
      `{"version":1,"type":"${type}","request_id":"big","reservation_id":"${ids.reservation_id}","execution_id":"${ids.execution_id}",${body(ids)}}`,
    );
    expect((await peer.take((message) => message.request_id === 'big')).type).toBe('accepted');
    const answer = await peer.request('result', { job_id });
    expect(answer).toMatchObject({ error: { code: 'task_failed', error: { type: expected } } });
  }
});

/** Levels of a value; a leaf is one. */
function levels(value: unknown): number {
  return typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(levels)) : 1;
}

test('no message is deeper than its reader takes, however deep arguments, results and details are', async () => {
  const worker = await RawPeer.worker(home.socket, ['deep']);
  const asker = await RawPeer.client(home.socket);
  for (let depth = 26; depth <= 32; depth++) {
    const nested = JSON.parse(`${'['.repeat(depth - 1)}1${']'.repeat(depth - 1)}`);
    const wrapped = { a: nested };
    for (const error of [undefined, { type: 'x', details: wrapped }]) {
      const enqueued = await peer.request('enqueue', { task: 'deep', args: depth === 32 ? {} : wrapped });
      const { job_id } = enqueued;
      const order = await worker.execute();
      const report = error === undefined ? { ...order.ids, result: nested } : { ...order.ids, error };
      await worker.request(error === undefined ? 'succeeded' : 'failed', report);
      const messages = [enqueued, order];
      for (const each of [peer, asker]) {
        messages.push(await each.request('status', { job_id }), await each.request('result', { job_id }));
      }
      expect(Math.max(...messages.map(levels))).toBeLessThanOrEqual(33);
      if (error === undefined) expect(messages.at(-1)).toMatchObject({ result: nested });
    }
  }
  await Promise.all([worker.close(), asker.close()]);
});

test('a late report is accepted, whatever its size', async () => {
  await peer.request('register_tasks', { tasks: ['cancelled-early'] });
  const { job_id } = await peer.request('enqueue', { task: 'cancelled-early', args: {} });
  const { ids } = await peer.execute();
  await peer.request('cancel', { job_id });
  await peer.take('cancel_execution');
  expect((await peer.request('failed', { ...ids, error: { type: 'CancelledError' } })).type).toBe('accepted');
  for (const result of ['x'.repeat(65_535), Array.from({ length: 10_001 }, () => 0)]) {
    expect((await peer.request('succeeded', { ...ids, result })).type).toBe('accepted');
  }
});

test('details that are too large end the job as well, instead of leaving it to its time limit', async () => {
  const worker = await RawPeer.worker(home.socket, ['detailed']);
  const { job_id } = await peer.request('enqueue', { task: 'detailed', args: {} });
  const { ids } = await worker.execute();
  const error = { type: 'x', details: { text: 'x'.repeat(20_000) } };
  expect((await worker.request('failed', { ...ids, error })).type).toBe('accepted');
  expect(await peer.request('result', { job_id })).toMatchObject({ error: { error: { type: 'error_too_large' } } });
  await worker.close();
});

test('the message of a failed task is kept and shown', async () => {
  await peer.request('register_tasks', { tasks: ['fails'] });
  const { job_id } = await peer.request('enqueue', { task: 'fails', args: {} });
  const { ids } = await peer.execute();
  await peer.request('failed', { ...ids, error: { type: 'ValueError', message: 'no such clip', traceback: 'line 1' } });
  expect(await peer.request('result', { job_id })).toMatchObject({
    error: { code: 'task_failed', message: 'no such clip' },
  });
  expect(await peer.request('status', { job_id })).toMatchObject({
    status: 'discarded',
    job: { errors: [{ code: 1, version: 1, type: 'ValueError', message: 'no such clip', traceback: 'line 1' }] },
  });
});

test('schedules over the wire, and their refusals', async () => {
  const scheduled = await peer.request('schedule', {
    task: 'unserved',
    every: { hours: 1 },
    delay: 100,
    declaration_id: 'nightly',
  });
  expect(scheduled).toMatchObject({
    type: 'scheduled',
    schedule_id: 'nightly',
    schedule: { id: 'nightly', task: 'unserved', kind: 'every', last_at: null },
  });
  expect(await peer.request('cancel_schedule', { schedule_id: 'nightly' })).toMatchObject({
    type: 'schedule_cancelled',
  });
  for (const bad of [
    {},
    { cron: '* * * * *', every: { days: 1 } },
    { every: { days: 0 } },
    { every: { weeks: 1 } },
    { cron: '* * * *' },
    { cron: '* * * * *', timezone: 'Europe/Kyiv' },
    { every: { days: 1 }, overlap: 'maybe' },
    { every: { days: 1 }, options: { nope: 1 } },
    { every: { days: 1 }, delay: 1, start_at: 1 },
  ]) {
    expect(code(await peer.request('schedule', { task: 't', ...bad }))).toBe('invalid_schedule');
  }
  expect(code(await peer.request('cancel_schedule', { schedule_id: 'nope' }))).toBe('schedule_not_found');
  expect(code(await peer.request('cancel_schedule', { schedule_id: '' }))).toBe('invalid_schedule_id');
});

test('extension messages are refused on a plain connection, and nothing unknown is ever pushed to it', async () => {
  for (const type of ['open_session', 'close_session', 'watch', 'watch_registry', 'inspect']) {
    expect(code(await peer.request(type, {}))).toBe('extension_required');
  }
  const types = new Set(peer.inbox.map((message) => message.type));
  types.delete('execute');
  expect([...types]).toEqual([]);
});

test.each<[string, Buffer, string, string?]>([
  [
    'no JSON',
    frame('hello'),
    'malformed_json',
    'a character that JSON does not allow there (at byte 0); write the payload with a JSON library',
  ],
  ['bad UTF-8', Buffer.from([0, 0, 0, 3, 0x22, 0xff, 0x22]), 'malformed_json'],
  ['an array', frame('[]'), 'invalid_frame'],
  [
    'version 2',
    frame('{"version":2,"type":"heartbeat","request_id":"a"}'),
    'unsupported_version',
    'version is missing or not the integer 1; send "version":1',
  ],
  ['no version', frame('{"type":"heartbeat","request_id":"a"}'), 'unsupported_version'],
  ['two versions', frame('{"version":1,"v":2,"type":"heartbeat","request_id":"a"}'), 'invalid_frame'],
  ['no request_id', frame('{"version":1,"type":"heartbeat"}'), 'invalid_frame'],
  ['a long request_id', frame(`{"version":1,"type":"heartbeat","request_id":"${'x'.repeat(129)}"}`), 'invalid_frame'],
  [
    'a duplicate key',
    frame('{"version":1,"type":"heartbeat","request_id":"a","request_id":"a"}'),
    'invalid_frame',
    'an object has a key twice (at byte 50); send each key once',
  ],
  ['an unknown type', frame('{"version":1,"type":"dance","request_id":"a"}'), 'unknown_message'],
  ['length zero', Buffer.alloc(4), 'invalid_frame'],
  [
    'length over the limit',
    Buffer.from([0, 16, 0, 1]),
    'frame_too_large',
    'the announced length is over the limit of a frame (1048577 bytes; the limit is 1048576); send less at once, and before each payload its length as four bytes, the highest first',
  ],
  ['length of 4 GiB', Buffer.from([255, 255, 255, 255]), 'frame_too_large'],
])('%s ends only that connection, after one uncorrelated error', async (_name, bytes, expected, message) => {
  const bad = await RawPeer.connect(home.socket);
  await bad.request('hello', { mode: 'client', runtime_id: 'bad' });
  bad.socket.write(Buffer.concat([frame('{"v":1,"type":"heartbeat","request_id":"good"}'), bytes]));
  expect((await bad.take('heartbeat_ok')).request_id).toBe('good');
  const error = await bad.take('error');
  expect([code(error), 'request_id' in error]).toEqual([expected, false]);
  expect(error['error']).toHaveProperty('message', message ?? expect.stringMatching(/ .* /));
  await bad.closed;
  expect((await peer.request('heartbeat')).type).toBe('heartbeat_ok');
});
