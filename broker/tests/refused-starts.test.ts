/** A broker that cannot start says why and what to do, ends with the code that says whether trying again may help, and changes nothing that is not its own. */
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { BrokerHome } from './broker-process.js';

const home = new BrokerHome();
const readOnly = join(home.directory, 'read-only');
const isMounted =
  mkdirSync(readOnly) === undefined && spawnSync('mount', ['-t', 'tmpfs', '-o', 'ro', 'tmpfs', readOnly]).status === 0;
afterAll(async () => {
  if (isMounted) spawnSync('umount', [readOnly]);
  await home.remove();
});
const isRoot = process.getuid?.() === 0;
const at = (name: string): string => join(home.directory, name);

async function refused(...args: string[]): Promise<{ exit: number | null; code: unknown; reason: unknown }> {
  const broker = home.spawn(args);
  const exit = await broker.exited;
  const line = broker.lines.find(({ event }) => event === 'broker.refused');
  return { exit, code: line?.['code'], reason: line?.['reason'] };
}

test.each([
  ['a file', () => writeFileSync(at('file'), ''), 'file', 78, 'EEXIST', 'a file stands where a folder was named'],
  ['below a file', () => undefined, 'file/state', 78, 'ENOTDIR', 'a file stands where a folder was named'],
  ['open to all', () => mkdirSync(at('open')), 'open', 78, 'shared_state_dir', 'name a folder of its own'],
])('a state directory that is %s', async (_kind, prepare, name, exit, code, advice) => {
  prepare();
  if (name === 'open') chmodSync(at('open'), 0o1777);
  expect(await refused('--state-dir', at(name))).toEqual({ exit, code, reason: expect.stringContaining(advice) });
  if (name === 'open') expect(statSync(at('open')).mode & 0o7777).toBe(0o1777);
});

test.each([
  ['the state', ['--state-dir', '/proc/x'], 'ENOENT', 'no folder can be made in /proc'],
  ['the state, further down', ['--state-dir', '/proc/x/y/z'], 'ENOENT', 'no folder can be made in /proc'],
  ['the socket', ['--socket', '/proc/x/broker.sock'], 'invalid_socket_path', '/proc/x does not exist; make it first'],
])('a file system that takes no folders, for %s', async (_what, args, code, reason) => {
  expect(await refused(...args)).toEqual({ exit: 78, code, reason: expect.stringContaining(reason) });
});

test('a state directory without a name', async () => {
  expect(await refused('--state-dir', '')).toEqual({
    exit: 78,
    code: 'invalid_state_dir',
    reason: '--state-dir must not be empty',
  });
});

test('a state directory of somebody else is left as it is, also by root', async () => {
  const folder = isRoot ? at('foreign') : '/etc';
  if (isRoot) {
    mkdirSync(folder, { mode: 0o750 });
    chownSync(folder, 4321, 4321);
  }
  const before = statSync(folder);
  const { exit, code, reason } = await refused('--state-dir', folder);
  expect({ exit, code }).toEqual({ exit: 78, code: 'foreign_state_dir' });
  expect(reason).toContain(`belongs to user ${before.uid}`);
  expect(reason).toContain(`chown ${process.getuid?.()} ${folder}`);
  expect(statSync(folder)).toMatchObject({ mode: before.mode, uid: before.uid });
});

test('a file system that cannot be written, for the state and for the socket', async () => {
  if (!isMounted) {
    process.stderr.write('refused-starts.test: this user may not mount a tmpfs; not tried\n');
    return;
  }
  const expected = { exit: 75, code: 'EROFS', reason: expect.stringContaining('name other places') };
  expect(await refused('--state-dir', join(readOnly, 'state'))).toEqual(expected);
  expect(await refused('--state-dir', join(readOnly, 'a', 'b', 'state'))).toEqual(expected);
  expect(await refused('--socket', join(readOnly, 's'))).toEqual(expected);
});

test('no right to write', async () => {
  const closed = at('closed');
  mkdirSync(closed, { mode: 0o500 });
  chmodSync(home.directory, 0o755);
  // Root may write everywhere: another user tries.
  const prefix = isRoot ? ['setpriv', '--reuid', '4321', '--regid', '4321', '--clear-groups'] : [];
  const broker = home.spawn(['--state-dir', join(closed, 'state'), '--socket', '/tmp/rhb-no-right.sock'], { prefix });
  expect(await broker.exited).toBe(75);
  expect(broker.lines.at(-1)).toMatchObject({
    code: 'EACCES',
    reason: expect.stringContaining('give this user the right to write there'),
  });
  rmSync(closed, { recursive: true });
});

test('a running broker is named, with what one can do', async () => {
  const first = await home.start();
  const { exit, code, reason } = await refused();
  expect({ exit, code }).toEqual({ exit: 5, code: 'already_running' });
  expect(reason).toContain(`(pid ${first.pid})`);
  expect(reason).toContain('stop that broker first, or name another --socket and another --state-dir');
  await first.kill();
});

test('a path that is too long for a socket', async () => {
  expect(await refused('--socket', `/tmp/${'ü'.repeat(60)}`)).toMatchObject({
    exit: 78,
    reason: expect.stringContaining('has 125 bytes, at most 100 are possible; choose a shorter one'),
  });
});
