/** Logs of real processes, written to pipes that nobody reads for a while. The children use the built package. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { createLog } from './daemon-log.js';
import { LOG_LIMITS } from './log-output.js';

const folder = mkdtempSync(join(tmpdir(), 'rh-log-'));
afterAll(() => rmSync(folder, { recursive: true }));

const PACKAGE = fileURLToPath(new URL('../dist/index.js', import.meta.url));
let files = 0;

type Line = { event: string; level: number; n?: number; lines?: number; stack?: string; text?: string };

/** Starts a process that has a `log`, runs `body`, and can `tell` its parent something and `heard` something from it. */
function start(body: string, stderr: number | 'pipe'): ChildProcess {
  const file = join(folder, `child-${files++}.mjs`);
  writeFileSync(
    file,
    `import { createLog, exitOnCrash } from ${JSON.stringify(PACKAGE)};
     const log = createLog('test', 'info');
     const tell = (text) => process.send(text);
     const heard = (text) => new Promise((resolve) => process.on('message', (said) => said === text && resolve()));
     ${body}`,
  );
  return spawn(process.execPath, [file], { stdio: ['ignore', 'ignore', stderr, 'ipc'] });
}

async function told(child: ChildProcess, text: string): Promise<void> {
  for (;;) {
    const [said] = await once(child, 'message');
    if (said === text) return;
  }
}

function linesOf(text: string): Line[] {
  expect(text.endsWith('\n')).toBe(true);
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** A named pipe: the end to read from and the end for the child. Nothing is read unless the test does it. */
function pipe(): { reading: number; writing: number } {
  const path = join(folder, `pipe-${files++}`);
  execFileSync('mkfifo', [path]);
  const reading = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  return { reading, writing: openSync(path, constants.O_WRONLY) };
}

/** Reads until the last writer is gone. */
async function readAll(fd: number): Promise<string> {
  const chunks: Buffer[] = [];
  const buffer = Buffer.alloc(65_536);
  for (;;) {
    try {
      const read = readSync(fd, buffer);
      if (read === 0) break;
      chunks.push(Buffer.from(buffer.subarray(0, read)));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  closeSync(fd);
  return Buffer.concat(chunks).toString();
}

/** Reads nothing before the child has said that it lives, then lets it end, and answers all that it wrote. */
async function linesAtTheEnd(child: ChildProcess, reading: number): Promise<Line[]> {
  await told(child, 'lives');
  const reads = readAll(reading);
  child.send('end');
  return linesOf(await reads);
}

const numbersIn = (lines: Line[]): number[] =>
  lines.filter((line) => line.event === 'tick').map((line) => line.n ?? -1);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

describe('the log of a process', () => {
  it('is not held up by a pipe that nobody reads, and loses nothing when reading goes on', async () => {
    const { reading, writing } = pipe();
    // Five times what a pipe holds. Timers go on meanwhile: the process is not held up.
    const child = start(
      `for (let n = 0; n < 2000; n += 1) log.info({ event: 'tick', n, text: 'x'.repeat(100) });
       for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setTimeout(resolve, 25));
       tell('lives');
       await heard('end');
       process.disconnect();`,
      writing,
    );
    closeSync(writing);
    const lines = await linesAtTheEnd(child, reading);
    expect(numbersIn(lines)).toEqual(upTo(2000));
    expect(lines).toHaveLength(2000);
  });

  it('drops lines beyond its limit, and says how many where they would have stood', async () => {
    const { reading, writing } = pipe();
    const count = Math.ceil((LOG_LIMITS.bufferedBytes * 2) / 1_000);
    const child = start(
      `let n = 0;
       for (; n < ${count}; n += 1) log.info({ event: 'tick', n, text: 'x'.repeat(1000) });
       tell('full');
       await heard('more');
       for (; process.connected; n += 1) { log.info({ event: 'tick', n }); await new Promise(setImmediate); }`,
      writing,
    );
    closeSync(writing);
    await told(child, 'full');
    const reads = readAll(reading);
    child.send('more', () => child.disconnect());
    const lines = linesOf(await reads);
    let next = 0;
    let dropped = 0;
    for (const line of lines) {
      if (line.event === 'log.dropped') {
        next += line.lines ?? 0;
        dropped += line.lines ?? 0;
      } else expect(line.n).toBe(next++);
    }
    expect(next).toBeGreaterThan(count);
    expect(dropped).toBeGreaterThan(count / 4);
  });

  it('is complete after process.exit', async () => {
    const { reading, writing } = pipe();
    const child = start(
      `for (let n = 0; n < 2000; n += 1) log.info({ event: 'tick', n, text: 'x'.repeat(100) });
       tell('leaves');
       process.exit(7);`,
      writing,
    );
    closeSync(writing);
    const ended = once(child, 'exit');
    await told(child, 'leaves');
    expect(numbersIn(linesOf(await readAll(reading)))).toEqual(upTo(2000));
    expect(await ended).toEqual([7, null]);
  });

  it('is complete after an exception that nobody caught, and says it without its secrets [RB-HS-13]', async () => {
    const child = start(
      `exitOnCrash('test');
       log.info({ event: 'tick', n: 0 });
       setImmediate(() => { throw new Error('GET https://o.invalid/k?X-Amz-Signature=abc failed'); });`,
      'pipe',
    );
    const chunks: Buffer[] = [];
    child.stderr?.on('data', (chunk: Buffer) => chunks.push(chunk));
    const [code] = await once(child, 'close');
    const lines = linesOf(Buffer.concat(chunks).toString());
    expect(code).toBe(1);
    expect(lines.map((line) => line.event)).toEqual(['tick', 'test.crashed']);
    expect(lines[1]?.stack).toContain('https://o.invalid/k?[redacted] failed');
  });

  it('ends in time although nobody ever reads', async () => {
    const { reading, writing } = pipe();
    const child = start(
      `for (let n = 0; n < 2000; n += 1) log.info({ event: 'tick', n, text: 'x'.repeat(100) });
       process.exit(0);`,
      writing,
    );
    closeSync(writing);
    expect(await once(child, 'exit')).toEqual([0, null]);
    const text = await readAll(reading);
    // What a pipe takes, it takes in whole lines.
    expect(numbersIn(linesOf(text)).length).toBeGreaterThan(100);
  });

  it('goes into a file as well, whatever a secret is called in it [RB-HS-13]', async () => {
    const path = join(folder, 'file.log');
    const fd = openSync(path, 'w');
    const child = start(
      `log.error({ event: 'x', text: 'GET https://o.invalid/k?X-Amz-Signature=abc failed', jobToken: 'eyJhbGciOiJIUzI1NiJ9.e30.sig' });
       log.info({ event: 'tick', n: 0, text: 'ä'.repeat(5000) });
       process.disconnect();`,
      fd,
    );
    closeSync(fd);
    await once(child, 'exit');
    const text = readFileSync(path, 'utf8');
    expect(text).not.toMatch(/abc|eyJhbGci/);
    expect(linesOf(text).map((line) => line.event)).toEqual(['x', 'tick']);
    expect(linesOf(text)[1]?.text).toHaveLength(5000);
  });

  it('does not block on a pipe that somebody who shares it has set to block', async () => {
    const { reading, writing } = pipe();
    // A child that inherits the pipe sets it to block when it is started, and back when it ends.
    const child = start(
      `import { spawnSync } from 'node:child_process';
       log.info({ event: 'tick', n: 0 });
       spawnSync(process.execPath, ['-e', ''], { stdio: ['ignore', 'ignore', 'inherit'] });
       for (let n = 1; n < 2000; n += 1) log.info({ event: 'tick', n, text: 'x'.repeat(100) });
       setTimeout(() => tell('lives'), 100);
       await heard('end');
       process.disconnect();`,
      writing,
    );
    closeSync(writing);
    expect(numbersIn(await linesAtTheEnd(child, reading))).toEqual(upTo(2000));
  });
});

describe('a line', () => {
  it('has level, time, daemon, process and event, and warnings are urgent', () => {
    const lines: [string, boolean][] = [];
    const log = createLog('broker', 'info', { write: (line, isUrgent) => lines.push([line, isUrgent]) });
    const before = Date.now();
    log.debug({ event: 'not.seen' });
    log.info({ event: 'op.settled', code: 'ok' });
    log.warn({ event: 'broker.lost' });
    const [first, second] = lines.map(([line]) => JSON.parse(line));
    expect(first).toEqual({
      level: 30,
      time: first.time,
      daemon: 'broker',
      pid: process.pid,
      event: 'op.settled',
      code: 'ok',
    });
    expect(new Date(first.time).toISOString()).toBe(first.time);
    expect(Date.parse(first.time)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(second.time)).toBeLessThanOrEqual(Date.now());
    expect(lines.map(([, isUrgent]) => isUrgent)).toEqual([false, true]);
  });
});
