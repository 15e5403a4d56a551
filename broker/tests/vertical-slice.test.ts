/** One job from end to end over a real broker process, as a plain Tay peer and with the extension. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BrokerHome } from './broker-process.js';
import { RawPeer } from './raw-peer.js';

let home: BrokerHome;
beforeEach(() => {
  home = new BrokerHome();
});
afterEach(async () => {
  await home.remove();
});

test('a plain Tay producer and worker see pure Tay v1, byte for byte', async () => {
  const broker = await home.start();
  const worker = await RawPeer.connect(home.socket);
  expect(await worker.request('hello', { mode: 'worker', runtime_id: 'w', max_concurrency: 2 })).toEqual({
    version: 1,
    type: 'hello_ok',
    request_id: 'q1',
    mode: 'worker',
    max_concurrency: 2,
  });
  await worker.request('register_tasks', { tasks: ['echo.v1'] });
  const producer = await RawPeer.connect(home.socket);
  await producer.request('hello', { mode: 'client', runtime_id: 'p', max_concurrency: 0 });
  const args = '{"z":1.0,"a":1180591620717411303424,"n":null,"s":"ü😀"}';
  producer.sendText(
    `{"version":1,"type":"enqueue","request_id":"e1","task":"echo.v1","args":${args},"options":{"submission_id":"a"}}`,
  );
  const enqueued = await producer.take('enqueued');
  expect(enqueued['job_id']).toBe('9b120abf30861b8423b982580ee5216b');
  expect(Object.keys(enqueued['job'] as object).sort()).toEqual(
    [
      'args',
      'attempt',
      'completed_at',
      'durability',
      'errors',
      'id',
      'max_attempts',
      'queue',
      'scheduled_at',
      'state',
      'task',
    ].sort(),
  );
  const execute = await worker.execute();
  expect(Object.keys(execute).sort()).toEqual(
    [
      'args',
      'execution_id',
      'ids',
      'job_id',
      'request_id',
      'reservation_id',
      'task',
      'timeout_ms',
      'type',
      'version',
    ].sort(),
  );
  expect(worker.texts.at(-1)).toContain(`"args":${args},`);
  expect((await worker.request('started', execute.ids)).type).toBe('accepted');
  worker.sendText(
    `{"version":1,"type":"succeeded","request_id":"r1","reservation_id":"${execute.ids.reservation_id}","execution_id":"${execute.ids.execution_id}","result":{"b":2.50,"a":[1e3]}}`,
  );
  expect((await worker.take((message) => message.request_id === 'r1')).type).toBe('accepted');
  await producer.request('result', { job_id: enqueued['job_id'] });
  expect(producer.texts.at(-1)).toContain('"result":{"b":2.50,"a":[1e3]}');
  const status = await producer.request('status', { job_id: enqueued['job_id'] });
  expect(status).toMatchObject({
    status: 'completed',
    job: { state: 'completed', attempt: 1, max_attempts: 1, errors: [] },
  });
  await worker.close();
  await producer.close();
  expect(await broker.stop()).toBe(0);
  expect(existsSync(home.socket)).toBe(false);
});

test('a session job of the extension: directory, secrets, progress, outcome, close; and all of it durable', async () => {
  const broker = await home.start();
  const worker = await RawPeer.worker(
    home.socket,
    ['reelbolt.video.v1'],
    { pid: process.pid },
    { 'reelbolt.video.v1': { sessions: 'host', attributes: { ffmpegVersion: '7.1' } } },
  );
  const client = await RawPeer.client(home.socket);
  const registry = await client.request('watch_registry');
  expect(registry['runtimes']).toMatchObject([
    {
      runtime_id: 'raw-worker',
      extension: true,
      tasks: { 'reelbolt.video.v1': { attributes: { ffmpegVersion: '7.1' } } },
    },
  ]);
  const opened = await client.request('open_session', {
    session_id: 'ses-1',
    task: 'reelbolt.video.v1',
    labels: { owner: 'bridge' },
  });
  const dir = (opened['session'] as { dir: string }).dir;
  expect(statSync(dir).mode & 0o777).toBe(0o700);
  const enqueue = {
    task: 'reelbolt.video.v1',
    session_id: 'ses-1',
    watch: true,
    args: { op: 'stage', url: 'reelhost-secret:s0' },
    options: { submission_id: 'op:1', queue: 'reelbolt' },
    secrets: { s0: 'https://store/x?X-Amz-Signature=CANARY' },
  };
  const enqueued = await client.request('enqueue', enqueue);
  const busy = await client.request('enqueue', { ...enqueue, options: { submission_id: 'op:2' } });
  expect(busy).toMatchObject({ type: 'error', error: { code: 'session_busy' } });
  const execute = await worker.execute();
  expect(execute).toMatchObject({
    session_id: 'ses-1',
    attempt: 1,
    queue: 'reelbolt',
    args: { op: 'stage', url: 'https://store/x?X-Amz-Signature=CANARY' },
  });
  worker.send({
    version: 1,
    type: 'progress',
    request_id: 'p1',
    ...execute.ids,
    progress: { stage: 'download', percent: 50 },
  });
  expect(await client.take('job_progress')).toMatchObject({
    job_id: enqueued['job_id'],
    progress: { stage: 'download', percent: 50 },
  });
  // Both come within the interval of the first: the last one still arrives, and before the outcome.
  for (const percent of [75, 100])
    worker.send({
      version: 1,
      type: 'progress',
      request_id: `p${percent}`,
      ...execute.ids,
      progress: { stage: 'download', percent },
    });
  expect((await worker.request('succeeded', { ...execute.ids, result: { bytes: 5 } })).type).toBe('accepted');
  expect(await client.take('job_settled')).toMatchObject({
    job_id: enqueued['job_id'],
    state: 'completed',
    result: { bytes: 5 },
  });
  const pushes = client.texts.filter((text) => /"type":"job_(progress|settled)"/.test(text));
  expect(pushes.at(-2)).toContain('"percent":100');
  expect(pushes.at(-1)).toContain('job_settled');
  const again = await client.request('enqueue', { ...enqueue, args: { op: 'stage', other: true } });
  expect(again).toMatchObject({ type: 'enqueued', conflict: true, job: { state: 'completed' } });
  expect(await client.take('job_settled')).toMatchObject({ result: { bytes: 5 } });
  await broker.kill();
  await worker.closed;
  const second = await home.start();
  const later = await RawPeer.client(home.socket);
  expect(await later.request('enqueue', enqueue)).toMatchObject({ job: { state: 'completed' } });
  expect(await later.take('job_settled')).toMatchObject({ result: { bytes: 5 } });
  expect(await later.request('close_session', { session_id: 'ses-1' })).toMatchObject({
    type: 'session_closed',
    stopped: true,
    session: { state: 'closed' },
  });
  expect(existsSync(dir)).toBe(false);
  expect(await later.request('close_session', { session_id: 'ses-1' })).toMatchObject({
    type: 'session_closed',
    stopped: true,
  });
  await later.close();
  await second.stop();
  for (const suffix of ['', '-wal']) {
    const path = join(home.stateDir, `broker.sqlite${suffix}`);
    if (existsSync(path)) expect(readFileSync(path).includes('CANARY')).toBe(false);
  }
});
