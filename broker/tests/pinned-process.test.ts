/** Whose a pinned session is, with real processes and a real journal: the process that ran its first job, across a restart of the broker too. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BrokerHome } from './broker-process.js';
import { RawPeer } from './raw-peer.js';

let home: BrokerHome;
const processes = new Set<ChildProcess>();
beforeEach(() => {
  home = new BrokerHome();
});
afterEach(async () => {
  for (const each of processes) await kill(each);
  await home.remove();
});

/** A process that only lives: the executors of this test say that they are it. */
function living(): ChildProcess {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 60_000)'], { stdio: 'ignore' });
  processes.add(child);
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  processes.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

const worker = (child: ChildProcess): Promise<RawPeer> =>
  RawPeer.worker(home.socket, ['t'], { runtime_id: 'same-name', pid: child.pid });

async function run(client: RawPeer, executor: RawPeer, id: string): Promise<unknown> {
  const options = { submission_id: id };
  await client.request('enqueue', { task: 't', args: {}, session_id: 's', watch: true, options });
  const { ids } = await executor.execute();
  await executor.request('succeeded', { ...ids, result: id });
  return (await client.take('job_settled'))['result'];
}

test('the process keeps its session over a cut and a restart of the broker; the next process with its name gets neither the session nor its jobs', async () => {
  const first = await home.start();
  let client = await RawPeer.client(home.socket);
  await client.request('open_session', { session_id: 's', task: 't' });
  const holder = living();
  let executor = await worker(holder);
  expect(await run(client, executor, 'one')).toBe('one');

  await executor.close();
  executor = await worker(holder);
  expect(await run(client, executor, 'two')).toBe('two');

  await first.kill();
  const second = await home.start();
  client = await RawPeer.client(home.socket);
  executor = await worker(holder);
  expect(await run(client, executor, 'three')).toBe('three');

  await kill(holder);
  await executor.close();
  const successor = await worker(living());
  const waiting = { task: 't', args: {}, session_id: 's', watch: true, options: { submission_id: 'four' } };
  const enqueued = await client.request('enqueue', waiting);
  if (enqueued.type === 'enqueued') {
    expect(await client.take('job_settled')).toMatchObject({ state: 'discarded', error: { type: 'executor_lost' } });
  } else expect(enqueued).toMatchObject({ error: { code: 'session_lost' } });
  await second.event('session.lost');
  expect(await client.request('enqueue', { ...waiting, options: { submission_id: 'five' } })).toMatchObject({
    error: { code: 'session_lost' },
  });
  expect(successor.inbox).toEqual([]);
  for (const peer of [client, executor, successor]) await peer.close();
});
