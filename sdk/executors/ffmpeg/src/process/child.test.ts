import { spawn } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HeadBuffer, TailBuffer } from '../core/output-tail.js';
import { type ChildOutcome, type ChildRequest, runChild } from './child.js';
import { createGuardian } from './guardian.js';
import { markedProcesses, ownerMarker, sweepOrphans } from './marker.js';

let folder: string;
let runs = 0;
const owner = ownerMarker();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reelhost-child-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

function node(script: string, more: Partial<ChildRequest> = {}): Promise<ChildOutcome> & { marker: string } {
  runs += 1;
  const marker = `${owner}${runs}`;
  const outcome = runChild({
    program: process.execPath,
    argv: ['-e', script],
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '' },
    marker,
    ...more,
  });
  return Object.assign(outcome, { marker });
}

describe('a child process', () => {
  it('gets /dev/null for input, the given folder, only the given environment and a group of its own', async () => {
    const out = new HeadBuffer(1 << 16);
    process.env['REELHOST_TEST_CANARY'] = 'inherited';
    const script = `
      const stdin = require('fs').readFileSync(0).length;
      const group = require('fs').readFileSync('/proc/self/stat','latin1').split(') ')[1].split(' ')[2];
      const fds = require('fs').readdirSync('/proc/self/fd').map((fd) => { try { return require('fs').readlinkSync('/proc/self/fd/' + fd) } catch { return '' } });
      process.stdout.write(JSON.stringify({ stdin, cwd: process.cwd(), env: process.env, own: Number(group) === process.pid, fds }));`;
    const outcome = await node(script, { onStdout: (chunk) => out.feed(chunk) });
    delete process.env['REELHOST_TEST_CANARY'];
    expect(outcome).toMatchObject({ kind: 'ended', exitCode: 0, stopped: null, treeGone: true });
    const seen = JSON.parse(Buffer.from(out.bytes()).toString());
    expect(seen).toMatchObject({ stdin: 0, own: true });
    expect(Object.keys(seen.env).sort()).toEqual(['PATH', 'REELHOST_CHILD']);
    expect(seen.fds.filter((name: string) => /socket/.test(name)).length).toBeLessThanOrEqual(2);
  });

  it('loses no byte of a normal program that prints a megabyte and ends', async () => {
    for (let n = 0; n < 10; n += 1) {
      const out = new TailBuffer(2 << 20);
      const outcome = await node(`process.stdout.write(Buffer.alloc(1 << 20, 'x'))`, {
        onStdout: (chunk) => out.feed(chunk),
      });
      expect(outcome).toMatchObject({ exitCode: 0 });
      expect(out.total).toBe(1 << 20);
    }
  });

  it('answers soon after exit, with the whole tail, though a grandchild holds the pipe, and ends that grandchild', async () => {
    const out = new TailBuffer(1 << 20);
    const script = `
      require('child_process').spawn('sleep', ['600'], { stdio: 'inherit', detached: true }).unref();
      process.stdout.write(Buffer.alloc(200_000, 'y'), () => process.exit(3));`;
    const started = performance.now();
    const running = node(script, { onStdout: (chunk) => out.feed(chunk) });
    expect(await running).toMatchObject({ kind: 'ended', exitCode: 3, treeGone: true });
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(out.total).toBe(200_000);
    expect(markedProcesses(running.marker)).toEqual([]);
  });

  it('ends a tree whose grandchild ignores SIGTERM, changed session and keeps forking', async () => {
    const stubborn = `
      process.on('SIGTERM', () => {});
      const { spawn } = require('child_process');
      setInterval(() => spawn('sleep', ['600'], { stdio: 'ignore', detached: true }).unref(), 100);`;
    const script = `
      process.on('SIGTERM', () => {});
      require('child_process').spawn(process.execPath, ['-e', ${JSON.stringify(stubborn)}], { stdio: 'ignore', detached: true }).unref();
      process.stdout.write('up');
      setInterval(() => {}, 1000);`;
    const abort = new AbortController();
    let up: () => void = () => undefined;
    const isUp = new Promise<void>((resolve) => {
      up = resolve;
    });
    const running = node(script, { signal: abort.signal, killAfterMs: 500, onStdout: () => up() });
    await isUp;
    abort.abort();
    expect(await running).toMatchObject({
      kind: 'ended',
      stopped: 'aborted',
      signal: 'SIGKILL',
      exitCode: 137,
      treeGone: true,
    });
    expect(markedProcesses(running.marker)).toEqual([]);
  });

  it('lets a polite program end early, long before SIGKILL', async () => {
    const abort = new AbortController();
    const running = node(
      `process.on('SIGTERM', () => process.exit(9)); process.stdout.write('up'); setInterval(() => {}, 1000)`,
      {
        signal: abort.signal,
        onStdout: () => abort.abort(),
      },
    );
    const outcome = await running;
    expect(outcome).toMatchObject({ exitCode: 9, stopped: 'aborted' });
  });

  it('stops at its own time limit', async () => {
    const outcome = await node('setInterval(() => {}, 1000)', { timeoutMs: 300 });
    expect(outcome).toMatchObject({ stopped: 'timeout', treeGone: true });
  });

  it('keeps memory bounded whatever is printed', async () => {
    const tail = new TailBuffer(16 * 1024);
    const before = process.memoryUsage().rss;
    const script = `const b = Buffer.alloc(1 << 20, 'z'); let n = 0; const more = () => { while (n++ < 128) if (!process.stderr.write(b)) return process.stderr.once('drain', more); }; more();`;
    expect(await node(script, { onStderr: (chunk) => tail.feed(chunk) })).toMatchObject({ exitCode: 0 });
    expect(tail.total).toBeGreaterThan(100 << 20);
    expect(tail.bytes().length).toBe(16 * 1024);
    expect(process.memoryUsage().rss - before).toBeLessThan(80 << 20);
  });

  it('names what is wrong with a program that cannot run', async () => {
    const text = join(folder, 'not-a-program');
    await writeFile(text, '\x7fELF but not really');
    expect(await node('', { program: join(folder, 'missing') })).toMatchObject({ kind: 'not_started', code: 'ENOENT' });
    expect(await node('', { program: text })).toMatchObject({ kind: 'not_started', code: 'EACCES' });
    // The C library hands a file the kernel cannot run to sh, which fails in its turn; never is it a success.
    await chmod(text, 0o755);
    expect(await node('', { program: text })).not.toMatchObject({ exitCode: 0 });
  });
});

describe('the guardian', () => {
  it('ends the children of an executor that was killed with -9', async () => {
    const child = `setInterval(() => {}, 1000)`;
    const parent = `
      import { runChild } from ${JSON.stringify(new URL('../../dist/process/child.js', import.meta.url).href)};
      import { createGuardian } from ${JSON.stringify(new URL('../../dist/process/guardian.js', import.meta.url).href)};
      import { ownerMarker } from ${JSON.stringify(new URL('../../dist/process/marker.js', import.meta.url).href)};
      const owner = ownerMarker();
      runChild({ program: process.execPath, argv: ['-e', ${JSON.stringify(child)}], cwd: '/', env: {}, marker: owner + '1',
        onStarted: (pid) => process.stdout.write(JSON.stringify({ owner, pid })) }, createGuardian(owner));`;
    const file = join(folder, 'parent.mjs');
    await writeFile(file, parent);
    const executor = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] });
    const line = await new Promise<Buffer>((resolve) => executor.stdout.once('data', resolve));
    const started = JSON.parse(line.toString()) as { owner: string; pid: number };
    expect(markedProcesses(started.owner).map((each) => each.pid)).toContain(started.pid);
    const gone = new Promise((resolve) => executor.once('exit', resolve));
    executor.kill('SIGKILL');
    await gone;
    await expect.poll(() => markedProcesses(started.owner).length, { timeout: 5_000 }).toBe(0);
    await expect.poll(() => commandLines(started.owner), { timeout: 5_000 }).toBe(0);
  });

  it('ends by itself when the executor stops', async () => {
    const guardian = createGuardian(ownerMarker());
    await guardian.start();
    expect(guardian.alive).toBe(true);
    await guardian.stop();
    expect(guardian.alive).toBe(false);
  });

  it('leaves the children of a living executor alone when another one sweeps at its start', async () => {
    const running = node(`process.stdout.write('up'); setInterval(() => {}, 1000)`, {
      timeoutMs: 1_000,
      onStdout: () => expect(sweepOrphans()).toBe(0),
    });
    expect(await running).toMatchObject({ stopped: 'timeout' });
  });
});

/** Guardians of this owner that still run. */
async function commandLines(owner: string): Promise<number> {
  const { readdir } = await import('node:fs/promises');
  let count = 0;
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const text = await readFile(`/proc/${name}/cmdline`, 'latin1').catch(() => '');
    if (text.includes('guardian-main') && text.includes(owner)) count += 1;
  }
  return count;
}
