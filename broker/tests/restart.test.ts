/** What a broker that was killed or frozen owes its peers afterwards, over real processes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
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

const plain = { extensions: [] };

test('for a plain Tay worker a killed broker means at-least-once: the same attempt again, and its late report is accepted', async () => {
  const broker = await home.start();
  const worker = await RawPeer.worker(home.socket, ['t'], plain);
  const client = await RawPeer.client(home.socket);
  const { job_id } = await client.request('enqueue', { task: 't', args: {} });
  const first = await worker.execute();
  await broker.kill();
  await home.start();
  const again = await RawPeer.worker(home.socket, ['t'], plain);
  expect((await again.request('succeeded', { ...first.ids, result: 'late' })).type).toBe('accepted');
  const second = await again.execute();
  expect([second['job_id'], second.ids.execution_id === first.ids.execution_id]).toEqual([job_id, false]);
  await again.request('succeeded', { ...second.ids, result: 'second' });
  const later = await RawPeer.client(home.socket);
  expect(await later.request('result', { job_id })).toMatchObject({ result: 'second' });
  expect(await later.request('status', { job_id })).toMatchObject({ job: { attempt: 1, state: 'completed' } });
  for (const peer of [worker, client, again, later]) await peer.close();
});

test('results, schedules and sessions survive a kill; an executor resumes what it runs', async () => {
  const broker = await home.start();
  const hello = { runtime_id: 'w1', pid: process.pid };
  const worker = await RawPeer.worker(home.socket, ['t'], hello, { t: { sessions: 'host' } });
  const client = await RawPeer.client(home.socket);
  await client.request('open_session', { session_id: 's', task: 't' });
  await client.request('schedule', { task: 'later', every: { hours: 1 }, delay: 3600, declaration_id: 'd' });
  const { job_id } = await client.request('enqueue', { task: 't', args: {}, session_id: 's' });
  const { ids } = await worker.execute();
  await broker.kill();
  await home.start();
  const back = await RawPeer.connect(home.socket);
  const resume = [
    { ...ids, job_id, state: 'running' },
    { execution_id: 'foreign', reservation_id: 'r', job_id, state: 'running' },
  ];
  const answer = await back.request('hello', {
    mode: 'worker',
    max_concurrency: 1,
    extensions: ['reelhost.1'],
    resume,
    ...hello,
  });
  expect(answer).toMatchObject({
    broker: { generation: 2 },
    resume: [
      { execution_id: ids.execution_id, wanted: true },
      { execution_id: 'foreign', wanted: false },
    ],
  });
  await back.request('register_tasks', { tasks: ['t'] });
  expect((await back.request('succeeded', { ...ids, result: { once: true } })).type).toBe('accepted');
  const later = await RawPeer.client(home.socket);
  await later.request('watch', { job_ids: [job_id, 'f'.repeat(32)] });
  expect(await later.take('job_settled')).toMatchObject({ job_id, state: 'completed', result: { once: true } });
  expect(await later.request('inspect', { what: 'schedules' })).toMatchObject({ data: [{ id: 'd', kind: 'every' }] });
  expect(await later.request('inspect', { what: 'session', id: 's' })).toMatchObject({
    data: { state: 'open', running_job_id: null },
  });
  for (const peer of [worker, client, back, later]) await peer.close();
});

test('an executor that is killed loses its op within a second; one whose connection is cut has time to come back', async () => {
  await home.start();
  const holder = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  const worker = await RawPeer.worker(home.socket, ['t'], { pid: holder.pid, runtime_id: 'w', max_concurrency: 2 });
  const client = await RawPeer.client(home.socket);
  const cut = await client.request('enqueue', { task: 't', args: {}, watch: true });
  await worker.execute();
  await worker.close();
  expect(await client.request('status', { job_id: cut['job_id'] })).toMatchObject({ status: 'executing' });
  const before = performance.now();
  holder.kill('SIGKILL');
  await once(holder, 'close');
  expect(await client.take('job_settled')).toMatchObject({ error: { type: 'executor_lost', retryable: true } });
  expect(performance.now() - before).toBeLessThan(1000);
  await client.close();
});

test('a broker that stood still reads what came meanwhile before it judges any time limit', async () => {
  const broker = await home.start();
  const worker = await RawPeer.worker(home.socket, ['t']);
  const client = await RawPeer.client(home.socket);
  const { job_id } = await client.request('enqueue', {
    task: 't',
    args: {},
    options: { timeout_ms: 700 },
    watch: true,
  });
  const { ids } = await worker.execute();
  broker.child.kill('SIGSTOP');
  worker.send({ version: 1, type: 'succeeded', request_id: 'r', ...ids, result: 'in time' });
  const stillness = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 1500)']);
  await once(stillness, 'close');
  broker.child.kill('SIGCONT');
  expect(await client.take('job_settled')).toMatchObject({ job_id, state: 'completed', result: 'in time' });
  await worker.close();
  await client.close();
});

test('SIGTERM: what was accepted is answered, nothing new is taken, exit 0', async () => {
  const broker = await home.start();
  const client = await RawPeer.client(home.socket);
  for (let n = 0; n < 50; n++)
    client.send({
      version: 1,
      type: 'enqueue',
      request_id: `e${n}`,
      task: 'none',
      args: {},
      options: { submission_id: `s${n}` },
    });
  await client.take((message) => message.request_id === 'e49');
  expect(await broker.stop()).toBe(0);
  await client.closed;
  expect(broker.lines.map((line) => line.event)).toContain('broker.stopped');
  expect(broker.noise).toEqual([]);
});
