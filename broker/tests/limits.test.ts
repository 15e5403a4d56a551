/** Every limit has a name, a default and a range, can be set, and holds: with the code that the table and the documents name. */
import { readFileSync } from 'node:fs';
import {
  MAX_CONNECTIONS,
  MAX_ERROR_BYTES,
  MAX_ERROR_BYTES_EXTENSION,
  MAX_FRAME_BYTES,
  MAX_FRAME_BYTES_EXTENSION,
  MAX_OUTSTANDING_REQUESTS,
  MAX_RESULT_BYTES,
  MAX_RESULT_BYTES_EXTENSION,
  REQUEST_LIMITS,
  REQUEST_LIMITS_EXTENSION,
} from '@reelhost/protocol';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { DEFAULT_SETTINGS, LIMIT_KEYS, LIMITS, type LimitKey, settingsOf } from '../src/core/index.js';
import { parseOptions } from '../src/options.js';
import { BrokerHome } from './broker-process.js';
import { type Message, RawPeer } from './raw-peer.js';

const home = new BrokerHome();
let socket = '';

/** Small values of everything that a peer can run into at once. */
const SMALL: Readonly<Record<string, string>> = {
  max_connections: '6',
  hello_timeout_ms: '300',
  frame_timeout_ms: '300ms',
  max_frame_bytes: '16KiB',
  extension_max_frame_bytes: '64KiB',
  max_depth: '10',
  max_values: '100',
  max_key_bytes: '64',
  max_id_bytes: '64',
  max_name_bytes: '32',
  max_tasks_per_message: '3',
  max_tasks_per_peer: '5',
  max_concurrency: '4',
  max_outstanding_requests: '2',
  max_args_bytes: '1000',
  extension_max_args_bytes: '2000',
  max_result_bytes: '500',
  extension_max_result_bytes: '900',
  max_error_bytes: '256',
  extension_max_error_bytes: '400',
  default_timeout_ms: '5s',
  max_timeout_ms: '10s',
  default_retries: '1',
  max_retries: '2',
  queue_concurrency: '1',
  max_secrets_held: '100',
  session_grace_ms: '100',
  max_session_grace_ms: '500',
  max_cancel_wait_ms: '700',
  max_live_jobs: '12',
  max_sessions: '3',
  max_schedules: '2',
  ended_schedules: '1',
};

beforeAll(async () => {
  await home.start(Object.entries(SMALL).flatMap(([name, value]) => ['--limit', `${name}=${value}`]));
  socket = home.socket;
});
afterAll(() => home.remove());

let peers: RawPeer[] = [];
afterEach(async () => {
  for (const peer of peers) await peer.close();
  peers = [];
});
async function client(hello: Record<string, unknown> = {}): Promise<RawPeer> {
  const peer = await RawPeer.client(socket, hello);
  peers.push(peer);
  return peer;
}
const plain = (): Promise<RawPeer> => client({ extensions: [] });
async function connected(): Promise<RawPeer> {
  const peer = await RawPeer.connect(socket);
  peers.push(peer);
  return peer;
}
async function worker(tasks: readonly string[], hello: Record<string, unknown> = {}): Promise<RawPeer> {
  const peer = await RawPeer.worker(socket, tasks, { runtime_id: 'w', pid: process.pid, ...hello });
  peers.push(peer);
  return peer;
}
const code = (message: Message): unknown => (message['error'] as { code?: unknown } | undefined)?.code;
const job = (args: unknown, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  task: 'none',
  args,
  ...more,
});
async function forgotten(peer: RawPeer, answer: Message): Promise<void> {
  await peer.request('cancel', { job_id: answer['job_id'] });
}
/** What an executor's report ends a job with. */
async function reported(report: string, fields: Record<string, unknown>, hello: Record<string, unknown> = {}) {
  const producer = await client();
  const executor = await worker(['report'], hello);
  const enqueued = await producer.request('enqueue', {
    task: 'report',
    args: {},
    options: { retries: 0 },
    watch: true,
  });
  const { ids } = await executor.execute();
  expect((await executor.request(report, { ...ids, ...fields })).type).toBe('accepted');
  const settled = await producer.take('job_settled');
  expect(settled['job_id']).toBe(enqueued['job_id']);
  return (settled['error'] as { type: string }).type;
}
const long = (units: number): string => 'x'.repeat(units);
const deep = (levels: number): unknown => (levels === 0 ? 1 : { a: deep(levels - 1) });

/** What a peer meets at a limit: over the real socket. */
const MET: Readonly<Record<string, () => Promise<unknown>>> = {
  max_connections: async () => {
    for (let n = 0; n < 6; n++) await connected();
    const refused = code(await (await connected()).take('error'));
    // Ended in order: who is destroyed counts until the broker has noticed, and the next test would be refused.
    for (const peer of peers) {
      peer.socket.end();
      await peer.closed;
    }
    return refused;
  },
  hello_timeout_ms: async () => code(await (await connected()).take('error', 5000)),
  frame_timeout_ms: async () => {
    const peer = await client();
    peer.socket.write(Buffer.from([0, 0, 1]));
    const error = code(await peer.take('error', 5000));
    await peer.closed;
    return error;
  },
  max_frame_bytes: async () => {
    const peer = await plain();
    peer.sendText(long(16_385));
    return code(await peer.take('error'));
  },
  extension_max_frame_bytes: async () => {
    const peer = await client();
    peer.sendText(long(65_537));
    return code(await peer.take('error'));
  },
  max_depth: async () => code(await (await client()).request('heartbeat', { a: deep(10) })),
  max_values: async () => code(await (await plain()).request('heartbeat', { a: Array.from({ length: 100 }, () => 1) })),
  max_key_bytes: async () => code(await (await client()).request('heartbeat', { a: { [long(65)]: 1 } })),
  max_id_bytes: async () => {
    const peer = await client();
    const submission = await peer.request('enqueue', job({}, { options: { submission_id: long(65) } }));
    expect(code(submission)).toBe('invalid_enqueue');
    expect(code(await peer.request('schedule', job({}, { every: { days: 1 }, declaration_id: long(65) })))).toBe(
      'invalid_schedule',
    );
    expect(code(await (await connected()).request('hello', { mode: 'client', runtime_id: long(65) }))).toBe(
      'invalid_hello',
    );
    peer.sendText(JSON.stringify({ version: 1, type: 'heartbeat', request_id: long(65) }));
    return code(await peer.take('error'));
  },
  max_name_bytes: async () => {
    const peer = await client();
    expect(code(await peer.request('open_session', { session_id: 's', task: long(33) }))).toBe('invalid_session');
    expect(code(await (await worker([])).request('register_tasks', { tasks: [long(33)] }))).toBe('invalid_tasks');
    expect(code(await peer.request('enqueue', job({}, { options: { queue: long(33) } })))).toBe('invalid_enqueue');
    return code(await peer.request('enqueue', { task: long(33), args: {} }));
  },
  max_tasks_per_message: async () =>
    code(await (await worker([])).request('register_tasks', { tasks: ['a', 'b', 'c', 'd'] })),
  max_tasks_per_peer: async () =>
    code(await (await worker(['a', 'b', 'c'])).request('register_tasks', { tasks: ['d', 'e', 'f'] })),
  max_concurrency: async () =>
    code(await (await connected()).request('hello', { mode: 'worker', runtime_id: 'w', max_concurrency: 5 })),
  max_outstanding_requests: async () => {
    const [peer, executor] = [await client(), await worker(['slow'])];
    const { job_id } = await peer.request('enqueue', { task: 'slow', args: {} });
    const { ids } = await executor.execute();
    for (const id of ['a', 'b']) peer.send({ version: 1, type: 'cancel', request_id: id, job_id, wait_ms: 700 });
    const refused = code(await peer.request('heartbeat'));
    await executor.request('failed', { ...ids, error: { type: 'cancelled' } });
    return refused;
  },
  max_args_bytes: async () => {
    const peer = await plain();
    expect(code(await peer.request('schedule', job({ a: long(1000) }, { every: { days: 1 } })))).toBe(
      'invalid_schedule',
    );
    return code(await peer.request('enqueue', job({ a: long(1000) })));
  },
  extension_max_args_bytes: async () => code(await (await client()).request('enqueue', job({ a: long(2000) }))),
  max_result_bytes: () => reported('succeeded', { result: long(500) }, { extensions: [] }),
  extension_max_result_bytes: () => reported('succeeded', { result: long(900) }),
  max_error_bytes: () => reported('failed', { error: { message: long(256) } }, { extensions: [] }),
  extension_max_error_bytes: () => reported('failed', { error: { message: long(400) } }),
  max_timeout_ms: async () =>
    code(await (await client()).request('enqueue', job({}, { options: { timeout: 10.001 } }))),
  max_retries: async () => code(await (await client()).request('enqueue', job({}, { options: { retries: 3 } }))),
  max_secrets_held: async () => {
    const peer = await client();
    const secret = job({ a: 'reelhost-secret:s' }, { secrets: { s: long(100) } });
    const first = await peer.request('enqueue', secret);
    const refused = code(await peer.request('enqueue', secret));
    await forgotten(peer, first);
    return refused;
  },
  max_session_grace_ms: async () =>
    code(await (await client()).request('close_session', { session_id: 's', grace_ms: 501 })),
  max_cancel_wait_ms: async () =>
    code(await (await client()).request('cancel', { job_id: 'a'.repeat(32), wait_ms: 701 })),
  max_live_jobs: async () => {
    const peer = await client();
    const made: Message[] = [];
    let answer = await peer.request('enqueue', job({}));
    for (; answer.type === 'enqueued' && made.length < 12; answer = await peer.request('enqueue', job({})))
      made.push(answer);
    for (const each of made) await forgotten(peer, each);
    return code(answer);
  },
  max_sessions: async () => {
    const peer = await client();
    const open = (n: number): Promise<Message> => peer.request('open_session', { session_id: `m${n}`, task: 't' });
    for (let n = 0; n < 3; n++) expect((await open(n)).type).toBe('session_opened');
    const refused = code(await open(3));
    for (let n = 0; n < 3; n++) await peer.request('close_session', { session_id: `m${n}` });
    return refused;
  },
  max_schedules: async () => {
    const peer = await client();
    const declare = (n: number): Promise<Message> =>
      peer.request('schedule', { task: 't', every: { days: 1 }, delay: 9000, declaration_id: `d${n}` });
    for (let n = 0; n < 2; n++) expect((await declare(n)).type).toBe('scheduled');
    const refused = code(await declare(2));
    for (let n = 0; n < 2; n++) await peer.request('cancel_schedule', { schedule_id: `d${n}` });
    return refused;
  },
  ended_schedules: async () => {
    const peer = await client();
    for (const id of ['e0', 'e1']) {
      await peer.request('schedule', { task: 't', every: { days: 1 }, delay: 9000, declaration_id: id });
      await peer.request('cancel_schedule', { schedule_id: id });
    }
    return code(await peer.request('cancel_schedule', { schedule_id: 'e0' }));
  },
};

/** The codes they are met with: the first one the table names, where it names one. */
const CODES: Readonly<Record<string, string>> = {
  max_connections: 'too_many_connections',
  hello_timeout_ms: 'hello_timeout',
  frame_timeout_ms: 'frame_timeout',
  max_frame_bytes: 'frame_too_large',
  extension_max_frame_bytes: 'frame_too_large',
  max_depth: 'value_limit',
  max_values: 'value_limit',
  max_key_bytes: 'value_limit',
  max_id_bytes: 'invalid_frame',
  max_name_bytes: 'invalid_enqueue',
  max_tasks_per_message: 'invalid_tasks',
  max_tasks_per_peer: 'invalid_tasks',
  max_concurrency: 'invalid_hello',
  max_outstanding_requests: 'too_many_requests',
  max_args_bytes: 'capacity',
  extension_max_args_bytes: 'capacity',
  max_result_bytes: 'result_too_large',
  extension_max_result_bytes: 'result_too_large',
  max_error_bytes: 'error_too_large',
  extension_max_error_bytes: 'error_too_large',
  max_timeout_ms: 'invalid_enqueue',
  max_retries: 'invalid_enqueue',
  max_secrets_held: 'capacity',
  max_session_grace_ms: 'invalid_session',
  max_cancel_wait_ms: 'invalid_request',
  max_live_jobs: 'capacity',
  max_sessions: 'capacity',
  max_schedules: 'capacity',
  ended_schedules: 'schedule_not_found',
};

test.each(Object.entries(CODES))('%s is met with %s', async (name, expected) => {
  expect(await MET[name]?.()).toBe(expected);
});

test('what a job, a queue and a session get when they name nothing is set by limits too, and an executor hears what holds', async () => {
  const peer = await client();
  const enqueued = await peer.request('enqueue', job({}));
  expect(enqueued['job']).toMatchObject({ max_attempts: 2 });
  const inspected = await peer.request('inspect', { what: 'job', id: enqueued['job_id'] });
  expect(inspected['data']).toMatchObject({ timeout_ms: 5000 });
  await forgotten(peer, enqueued);
  const busy = await worker(['q'], { max_concurrency: 3 });
  const [one, two] = [
    await peer.request('enqueue', { task: 'q', args: {} }),
    await peer.request('enqueue', { task: 'q', args: {} }),
  ];
  const { ids } = await busy.execute();
  await busy.request('heartbeat');
  expect(busy.inbox.map((message) => message.type)).not.toContain('execute');
  await busy.request('succeeded', { ...ids, result: 1 });
  expect((await busy.execute())['job_id']).toBe(two['job_id']);
  expect(one['job_id']).not.toBe(two['job_id']);
  await forgotten(peer, two);
  const hello = await (await connected()).request('hello', {
    mode: 'client',
    runtime_id: 'c',
    extensions: ['reelhost.1'],
  });
  expect(hello['limits']).toEqual({
    max_frame_bytes: 65_536,
    max_result_bytes: 900,
    max_error_bytes: 400,
    max_args_bytes: 2000,
    max_outstanding_requests: 2,
    max_tasks_per_message: 3,
  });
});

test('max_unread_bytes: a peer that lets so much wait unread is cut off, and nobody else', async () => {
  const other = new BrokerHome();
  try {
    const broker = await other.start(['--limit', 'max_unread_bytes=1MiB']);
    const [deaf, watcher] = [await RawPeer.client(other.socket), await RawPeer.client(other.socket)];
    const executor = await RawPeer.worker(other.socket, ['t'], { max_concurrency: 4 });
    const jobs: unknown[] = [];
    for (let n = 0; n < 4; n++)
      jobs.push((await watcher.request('enqueue', { task: 't', args: {}, watch: true }))['job_id']);
    await deaf.request('watch', { job_ids: jobs });
    deaf.socket.pause();
    for (let n = 0; n < 4; n++) {
      const { ids } = await executor.execute();
      executor.send({ version: 1, type: 'succeeded', request_id: `r${n}`, ...ids, result: long(900_000) });
      await watcher.take('job_settled');
    }
    expect(await broker.event('peer.cut_off')).toMatchObject({ reason: 'slow_consumer' });
    expect((await watcher.request('heartbeat')).type).toBe('heartbeat_ok');
    for (const peer of [deaf, watcher, executor]) await peer.close();
  } finally {
    await other.remove();
  }
});

test('every limit reaches the broker by its name', async () => {
  const other = new BrokerHome();
  try {
    const values = [...LIMIT_KEYS].map(([name, key]): [string, number] => {
      const { value, min, max } = LIMITS[key];
      return [name, value === min ? Math.min(max, value + 1) : Math.max(min, value - Math.ceil(value / 64))];
    });
    await other.start(values.flatMap(([name, value]) => ['--limit', `${name}=${value}`]));
    const peer = await RawPeer.client(other.socket);
    const stats = await peer.request('inspect', { what: 'stats' });
    expect((stats['data'] as { limits: unknown }).limits).toEqual(Object.fromEntries(values));
    for (const [name, value] of values)
      expect([name, DEFAULT_SETTINGS[LIMIT_KEYS.get(name) as LimitKey]]).not.toEqual([name, value]);
    await peer.close();
  } finally {
    await other.remove();
  }
});

function read(...limits: readonly string[]): { readonly exit: unknown; readonly said: string } {
  let said = '';
  const write = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    said += String(text);
    return true;
  });
  try {
    return { exit: parseOptions(['--state-dir', '/x', ...limits.flatMap((limit) => ['--limit', limit])]), said };
  } finally {
    write.mockRestore();
  }
}

test.each<[string, string]>([
  ['max_frame_byte=1', 'there is no limit max_frame_byte; did you mean max_frame_bytes?'],
  ['hello-timout=1s', 'did you mean hello_timeout_ms?'],
  ['speed=1', 'there is no limit speed; --limits shows all'],
  ['max_frame_bytes=1', 'max_frame_bytes must be a whole number in 8192..16777216, in bytes or with b, kib, mib, gib'],
  ['max_frame_bytes=17MiB', 'in 8192..16777216'],
  ['max_frame_bytes=10s', 'in bytes or with b, kib, mib, gib'],
  ['max_retries=1.5', 'max_retries must be a whole number in 0..65534'],
  ['max_retries=', 'max_retries must be a whole number in 0..65534'],
  ['max_retries=-1', 'max_retries must be a whole number in 0..65534'],
  ['max_retries', 'must be NAME=VALUE'],
  ['=5', 'must be NAME=VALUE'],
])('--limit %s is refused with exit code 2 and says what is right', (limit, text) => {
  const { exit, said } = read(limit);
  expect(exit).toBe(2);
  expect(said).toContain(text);
});

test('two named limits that contradict each other are refused; a limit nobody named follows', () => {
  const { exit, said } = read('max_frame_bytes=16KiB', 'max_args_bytes=20000');
  expect(exit).toBe(2);
  expect(said).toContain('max_args_bytes = 20000 and 4096 bytes of envelope must fit into max_frame_bytes = 16384');
  expect(settingsOf({ maxFrameBytes: 16_384 })).toMatchObject({ maxArgsBytes: 12_288, maxResultBytes: 12_288 });
  expect(settingsOf({ maxArgsBytes: 2_000_000 })).toMatchObject({ maxFrameBytes: 2_004_096 });
  expect(settingsOf({ maxTimeoutMs: 1000 })).toMatchObject({ defaultTimeoutMs: 1000 });
  expect(settingsOf({ maxArgsBytes: 16_777_216 })).toContain('max_frame_bytes would have to be 16781312');
});

test('the flags of single limits and --limit set the same thing, the last word counts', () => {
  const of = (...argv: string[]): unknown => {
    const options = parseOptions(['--state-dir', '/x', ...argv]);
    return typeof options === 'number' ? options : options.settings.maxConnections;
  };
  expect(of()).toBe(128);
  expect(of('--max-connections', '7')).toBe(7);
  expect(of('--limit', 'max_connections=8', '--max-connections', '7')).toBe(7);
  expect(of('--max-connections', '7', '--limit', 'max_connections=8')).toBe(8);
});

test('the defaults are those of the language', () => {
  expect(DEFAULT_SETTINGS).toMatchObject(REQUEST_LIMITS);
  expect(DEFAULT_SETTINGS).toMatchObject({
    maxConnections: MAX_CONNECTIONS,
    maxOutstandingRequests: MAX_OUTSTANDING_REQUESTS,
    extensionMaxFrameBytes: MAX_FRAME_BYTES_EXTENSION,
    extensionMaxArgsBytes: REQUEST_LIMITS_EXTENSION.maxArgsBytes,
    maxFrameBytes: MAX_FRAME_BYTES,
    maxResultBytes: MAX_RESULT_BYTES,
    maxErrorBytes: MAX_ERROR_BYTES,
    extensionMaxResultBytes: MAX_RESULT_BYTES_EXTENSION,
    extensionMaxErrorBytes: MAX_ERROR_BYTES_EXTENSION,
  });
  for (const { value, min, max } of Object.values(LIMITS)) expect(value >= min && value <= max).toBe(true);
});

test('docs/operations.md lists every limit as it is', () => {
  const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
  const section = page.split('## Limits\n')[1]?.split('\n## ')[0] ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  const number = (value: number): string => value.toLocaleString('en-US');
  expect(rows).toEqual(
    [...LIMIT_KEYS].map(([name, key]) => {
      const { value, min, max, unit, over, meaning } = LIMITS[key];
      const counted = unit === 'count' ? '' : unit;
      return `| \`${name}\` | ${number(value)} | ${number(min)} … ${number(max)} | ${counted} | ${meaning} | ${over} |`;
    }),
  );
});
