/** Who owns the socket: decided by a lock for life, never by a time-out. */
import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { prepareSocketDirectory, resolveSocket } from '../src/socket/discovery.js';
import { BrokerHome } from './broker-process.js';
import { RawPeer } from './raw-peer.js';

let home: BrokerHome;
beforeEach(() => {
  home = new BrokerHome();
});
afterEach(async () => {
  await home.remove();
});

test('five starters at once over a stale socket leave exactly one, which is reachable; all others exit 5', async () => {
  const first = await home.start();
  await first.kill();
  expect(lstatSync(home.socket).isSocket()).toBe(true);
  const starters = Array.from({ length: 5 }, () => home.spawn());
  const ends = await Promise.all(
    starters.map((starter) =>
      Promise.race([starter.exited, starter.event('broker.ready', 25_000).then(() => 'ready' as const)]),
    ),
  );
  expect(ends.filter((end) => end === 'ready')).toHaveLength(1);
  expect(ends.filter((end) => end === 5)).toHaveLength(4);
  await (await RawPeer.client(home.socket)).close();
}, 60_000);

test('a stopped but living broker keeps its socket and says who it is', async () => {
  const broker = await home.start();
  broker.child.kill('SIGSTOP');
  const second = home.spawn();
  expect(await second.exited).toBe(5);
  expect(second.lines.at(-1)).toMatchObject({
    event: 'broker.refused',
    code: 'already_running',
    reason: expect.stringContaining(`pid ${broker.pid}`),
  });
  const sameState = home.spawn(['--socket', join(home.directory, 'other.sock')]);
  expect(await sameState.exited).toBe(5);
  broker.child.kill('SIGCONT');
  await (await RawPeer.client(home.socket)).close();
});

test.each(['file', 'symlink', 'directory'] as const)('a %s at the path is refused and left untouched', async (kind) => {
  const target = join(home.directory, 'target');
  writeFileSync(target, 'precious');
  if (kind === 'file') writeFileSync(home.socket, 'precious');
  else if (kind === 'symlink') symlinkSync(target, home.socket);
  else mkdirSync(home.socket);
  const broker = home.spawn();
  expect(await broker.exited).toBe(78);
  expect(broker.lines.at(-1)).toMatchObject({ code: 'socket_path_exists' });
  const stat = lstatSync(home.socket);
  expect([stat.isFile(), stat.isSymbolicLink(), stat.isDirectory()]).toEqual([
    kind === 'file',
    kind === 'symlink',
    kind === 'directory',
  ]);
  expect(readFileSync(target, 'utf8')).toBe('precious');
});

test('a foreign server at the path is left alone', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(home.socket, resolve));
  const broker = home.spawn();
  expect(await broker.exited).toBe(5);
  expect(broker.lines.at(-1)).toMatchObject({ code: 'socket_path_in_use' });
  expect(existsSync(home.socket)).toBe(true);
  await new Promise((resolve) => server.close(resolve));
});

test('no moment with a wider mode than configured, even with umask 0', async () => {
  const watcher = spawn(process.execPath, [
    '-e',
    `const fs=require('fs');let seen=new Set();const end=Date.now()+20000;process.stdin.on('data',()=>{console.log([...seen].join());process.exit()});
     (function look(){for(let i=0;i<400;i++){try{seen.add((fs.lstatSync(process.argv[1]).mode&0o777).toString(8))}catch{}}if(Date.now()<end)setImmediate(look)})()`,
    home.socket,
  ]);
  let seen = '';
  watcher.stdout.on('data', (chunk: Buffer) => {
    seen += chunk.toString();
  });
  const closed = new Promise((resolve) => watcher.once('close', resolve));
  await home.start([], { prefix: ['sh', '-c', 'umask 0; exec "$@"', 'sh'] });
  await (await RawPeer.client(home.socket)).close();
  watcher.stdin.write('done\n');
  await closed;
  expect(seen.trim()).toBe('600');
  expect(statSync(home.stateDir).mode & 0o777).toBe(0o700);
});

test('mode 0660 when it is asked for', async () => {
  await home.start(['--socket-mode', '0660']);
  expect(statSync(home.socket).mode & 0o777).toBe(0o660);
});

test('a removed socket file is bound again, with its mode, and nobody who is connected notices', async () => {
  const broker = await home.start();
  const early = await RawPeer.client(home.socket);
  rmSync(home.socket);
  rmSync(`${home.socket}.lock`);
  await broker.event('socket.restored', 20_000);
  await broker.event('lock.restored', 20_000);
  expect((await early.request('heartbeat')).type).toBe('heartbeat_ok');
  expect(statSync(home.socket).mode & 0o777).toBe(0o600);
  const late = await RawPeer.client(home.socket);
  const second = home.spawn();
  expect(await second.exited).toBe(5);
  await early.close();
  await late.close();
});

test('a removed directory of the socket comes back private, with lock and socket, and nobody who is connected notices', async () => {
  const directory = join(home.directory, 'run');
  mkdirSync(directory, { mode: 0o700 });
  const socket = join(directory, 's.sock');
  const broker = await home.start(['--socket', socket]);
  const early = await RawPeer.client(socket);
  rmSync(directory, { recursive: true });
  await broker.event('lock.restored', 20_000);
  await broker.event('socket.restored', 20_000);
  expect((await early.request('heartbeat')).type).toBe('heartbeat_ok');
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  const late = await RawPeer.client(socket);
  await early.close();
  await late.close();
});

test('without its state directory the broker takes no more work, says so, stays up and ends when it is told to', async () => {
  const broker = await home.start();
  const client = await RawPeer.client(home.socket);
  rmSync(home.stateDir, { recursive: true });
  expect(await broker.event('broker.degraded', 20_000)).toMatchObject({ code: 'journal_error' });
  const refused = await client.request('enqueue', { task: 't', args: {} });
  expect(refused['error']).toMatchObject({
    code: 'unavailable',
    reason: 'journal_error',
    message: expect.stringContaining('broker.sqlite'),
  });
  expect(await client.request('inspect', { what: 'stats' })).toMatchObject({
    data: { journal: { degraded: { code: 'journal_error' } } },
  });
  expect(await broker.stop()).toBe(0);
});

test('a connection too many is told so before it is closed', async () => {
  await home.start(['--max-connections', '1']);
  const first = await RawPeer.client(home.socket);
  const second = await RawPeer.connect(home.socket);
  expect(await second.take('error')).toMatchObject({ error: { code: 'too_many_connections' } });
  await second.closed;
  expect((await first.request('heartbeat')).type).toBe('heartbeat_ok');
  await first.close();
});

test('directories that others could write, or that are missing, and sockets inside the state are refused', async () => {
  const open = join(home.directory, 'open');
  mkdirSync(open);
  chmodSync(open, 0o777);
  for (const [socket, code] of [
    [join(open, 's'), 'unsafe_socket_directory'],
    [join(home.directory, 'missing', 's'), 'invalid_socket_path'],
    [join(home.stateDir, 's'), 'invalid_socket_path'],
    ['relative.sock', 'invalid_socket_path'],
    [`/tmp/${'ü'.repeat(50)}`, 'invalid_socket_path'],
  ] as const) {
    const broker = home.spawn(['--socket', socket]);
    expect([socket, await broker.exited, broker.lines.at(-1)?.['code']]).toEqual([socket, 78, code]);
  }
});

test('discovery in order: explicit, TAY_SOCKET_PATH, XDG_RUNTIME_DIR, TMPDIR, /tmp; a bad explicit one is never replaced', () => {
  const uid = process.getuid?.() ?? 0;
  const xdg = join(home.directory, 'xdg');
  const tmp = join(home.directory, 'tmp');
  mkdirSync(xdg);
  mkdirSync(tmp);
  const all = { TAY_SOCKET_PATH: '/a/../b/s', XDG_RUNTIME_DIR: xdg, TMPDIR: tmp };
  const place = (explicit: string | undefined, env: Record<string, string>): string =>
    resolveSocket(explicit, env).path;
  expect(place('/x/y', all)).toBe('/x/y');
  expect(place(undefined, all)).toBe('/b/s');
  if (!existsSync('/run/tay')) {
    expect(place(undefined, { ...all, TAY_SOCKET_PATH: '' })).toBe(join(xdg, 'tay/tay.sock'));
    expect(place(undefined, { TMPDIR: tmp, XDG_RUNTIME_DIR: join(home.directory, 'gone') })).toBe(
      join(tmp, `tay-${uid}/tay.sock`),
    );
    expect(place(undefined, { TMPDIR: `${tmp}/${'x'.repeat(100)}` })).toBe(`/tmp/tay-${uid}/tay.sock`);
  }
  expect(() => place('relative', all)).toThrow('absolute');
  expect(() => place(undefined, { TAY_SOCKET_PATH: `/${'x'.repeat(100)}` })).toThrow('at most 100');
});

test('an automatic directory is made private, also when it was there with a wider mode', () => {
  const xdg = join(home.directory, 'xdg');
  mkdirSync(join(xdg, 'tay'), { recursive: true, mode: 0o777 });
  const path = join(xdg, 'tay', 'tay.sock');
  prepareSocketDirectory({ path, automatic: true });
  expect(statSync(join(xdg, 'tay')).mode & 0o777).toBe(0o700);
  rmSync(join(xdg, 'tay'), { recursive: true });
  symlinkSync(home.directory, join(xdg, 'tay'));
  expect(() => prepareSocketDirectory({ path, automatic: true })).toThrow('is not a directory');
});
