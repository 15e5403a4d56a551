import { createHash } from 'node:crypto';
import { readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { TaskError } from '@reelhost/sdk';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { codeOf as code, type MediaKit, type MediaSession, openMediaKit } from './media-session.test-kit.js';
import { MAX_INLINE_BYTES } from './ops/op-run.js';
import { markedProcesses } from './process/marker.js';

let kit: MediaKit;
let session: MediaSession;
let dir: string;
let folder: string;
let reports: MediaSession['reports'];
let store: http.Server;
const objects = new Map<string, Buffer>();

beforeAll(async () => {
  kit = await openMediaKit();
  folder = kit.folder;
  store = http.createServer((request, response) => {
    const key = new URL(request.url ?? '', 'http://h').pathname;
    if (request.method === 'GET') {
      const found = objects.get(key);
      response.writeHead(found ? 200 : 404, found ? { 'content-length': String(found.length) } : {}).end(found);
      return;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      objects.set(key, Buffer.concat(chunks));
      response.writeHead(200).end();
    });
  });
  await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  await kit.close();
  store.closeAllConnections();
  await new Promise((resolve) => store.close(resolve));
});
beforeEach(async () => {
  session = await kit.session();
  dir = session.dir;
  reports = session.reports;
});

const url = (key: string): string =>
  `http://127.0.0.1:${(store.address() as AddressInfo).port}/${key}?X-Amz-Signature=canary`;
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const op: MediaSession['op'] = (...all) => session.op(...all);
const ffmpeg: MediaSession['ffmpeg'] = (...all) => session.ffmpeg(...all);

describe('a media session', () => {
  it('stages, encodes, probes, reads, publishes, stats and closes, leaving nothing', async () => {
    expect(
      await ffmpeg('-f lavfi -i testsrc2=size=160x90:rate=10:duration=2 -c:v libx264 -preset ultrafast src.mp4'),
    ).toMatchObject({ exitCode: 0 });
    const source = await readFile(join(dir, 'src.mp4'));
    objects.set('/in.mp4', source);
    await rm(join(dir, 'src.mp4'));

    expect(
      await op('stage', { url: url('in.mp4'), path: 'in/clip.mp4', maxBytes: 1 << 20, sha256: sha256(source) }),
    ).toEqual({ bytes: source.length, sha256: sha256(source) });
    expect(await op('stat', { path: 'in/clip.mp4' })).toEqual({ exists: true, bytes: source.length });
    const encoded = await ffmpeg('-i in/clip.mp4 -vf scale=80:-2 -c:v libx264 -preset ultrafast -y out.mp4');
    expect(encoded).toEqual({
      exitCode: 0,
      stderrTail: expect.stringContaining('out.mp4'),
      durationMs: expect.any(Number),
    });
    const probed = await op('ffprobe', {
      argv: ['-v', 'error', '-of', 'json', '-show_streams', 'out.mp4'],
      timeoutSec: 20,
    });
    expect(Object.keys(probed).sort()).toEqual(['exitCode', 'stderrTail', 'stdout']);
    expect(JSON.parse(probed['stdout'] as string).streams[0]).toMatchObject({ width: 80, codec_name: 'h264' });

    const made = await readFile(join(dir, 'out.mp4'));
    expect(
      await op('publish', { path: 'out.mp4', putUrl: url('out.mp4'), maxBytes: 1 << 20, contentType: 'video/mp4' }),
    ).toEqual({ bytes: made.length, sha256: sha256(made) });
    expect(objects.get('/out.mp4')?.equals(made)).toBe(true);
    expect(await op('read', { path: 'out.mp4', maxBytes: 1 << 20 })).toEqual({
      content: made.toString('base64'),
      encoding: 'base64',
      bytes: made.length,
    });
    expect(await op('close')).toEqual({});
    expect(await readdir(dir)).toEqual([]);
  });

  it('reports progress that rises, is below 100 while it runs, and is 100 after exit code 0 only [RB-MED-05]', async () => {
    await ffmpeg('-re -f lavfi -i testsrc2=size=160x90:rate=10:duration=2 -t 2 -c:v libx264 -preset ultrafast a.mp4');
    const percents = reports.map((report) => report.percent ?? -1);
    expect(percents.length).toBeGreaterThan(2);
    expect(percents).toEqual([...percents].sort((a, b) => a - b));
    expect(percents.slice(0, -1).every((percent) => percent < 100)).toBe(true);
    expect(percents.at(-1)).toBe(100);
    expect(reports.some((report) => /speed [\d.]+x, eta /.test(report.detail ?? ''))).toBe(true);

    reports.length = 0;
    await writeFile(join(dir, 'noise.mp4'), 'this is no video');
    expect(await ffmpeg('-i noise.mp4 -t 2 b.mp4')).toMatchObject({ exitCode: expect.any(Number) });
    expect(reports.some((report) => report.percent === 100)).toBe(false);
  });

  it('answers a failed program with its exit code and the end of its log, in paths of the session', async () => {
    await writeFile(join(dir, 'broken.mp4'), Buffer.alloc(4096, 7));
    const failed = await ffmpeg('-i broken.mp4 out.mp4');
    expect(failed['exitCode']).not.toBe(0);
    expect(failed['stderrTail']).toContain('broken.mp4');
    expect(failed['stderrTail']).not.toContain(folder);
    expect(await op('stat', { path: 'out.mp4' })).toEqual({ exists: false, bytes: 0 });
  });

  it('never waits for an answer on the terminal: an output that exists fails at once without -y', async () => {
    await writeFile(join(dir, 'out.mp4'), 'mine');
    const refused = await ffmpeg('-f lavfi -i color=size=64x64:duration=1 out.mp4');
    expect(refused['exitCode']).not.toBe(0);
    expect(await readFile(join(dir, 'out.mp4'), 'utf8')).toBe('mine');
  });

  it('refuses what the validator refuses, and says which argument', async () => {
    for (const line of [
      '-i http://example.com/x out.mp4',
      '-i /etc/passwd out.mp4',
      '-i concat:/etc/passwd|a out.mp4',
      '-f lavfi -i movie=/etc/passwd out.mp4',
    ]) {
      expect(await code(ffmpeg(line)), line).toBe('argv_not_allowed');
    }
    expect(await code(op('ffprobe', { argv: ['/etc/passwd'] }))).toBe('argv_not_allowed');
  });

  it('stops at the time limit and on cancel, with no process left [RB-ARG-09] [RB-CAN-01]', async () => {
    const endless = '-re -f lavfi -i testsrc2=size=160x90:rate=10 -c:v libx264 -preset ultrafast endless.mp4';
    expect(await code(ffmpeg(endless, {}, { timeoutSec: 0.5 }))).toBe('timeout');
    const abort = new AbortController();
    const running = ffmpeg(endless.replace('endless', 'second'), { signal: abort.signal });
    await expect.poll(() => reports.length, { timeout: 10_000 }).toBeGreaterThan(1);
    abort.abort(new TaskError('cancelled', 'by the test'));
    expect(await code(running)).toBe('cancelled');
    expect(markedProcesses(kit.owner)).toEqual([]);
  });

  it('stops a runaway encode soon after it crosses the quota or the output cap, and gives its room back [RB-ARG-10]', async () => {
    const runaway = '-f lavfi -i testsrc2=size=640x360:rate=25 -c:v rawvideo -f nut big.nut';
    const small = { services: { sessionQuotaBytes: 20 << 20 } };
    const started = performance.now();
    expect(await code(ffmpeg(runaway, small))).toBe('disk_full');
    expect(performance.now() - started).toBeLessThan(10_000);
    // Many small files: no single one meets the limit of the kernel, the watch has to see their sum.
    expect(await code(ffmpeg('-f lavfi -i testsrc2=size=640x360:rate=25 f%06d.bmp', small))).toBe('disk_full');
    expect(await readdir(dir)).toEqual([]);
    expect(await ffmpeg('-f lavfi -i color=size=64x64:duration=1 small.mp4', small)).toMatchObject({ exitCode: 0 });
    await writeFile(join(dir, 'mine.bin'), Buffer.alloc(20 << 20));
    expect(await code(ffmpeg('-f lavfi -i color=size=64x64:duration=1 more.mp4', small))).toBe('disk_full');
    expect(await readdir(dir)).toEqual(['mine.bin', 'small.mp4']);
    expect(await code(ffmpeg(runaway, { limits: { maxOutputBytes: 10 << 20 } }))).toBe('output_too_large');
    expect(await readdir(dir)).toEqual(['mine.bin', 'small.mp4']);
  });

  it('caps what ffprobe prints and says so [RB-MED-04]', async () => {
    await ffmpeg('-f lavfi -i anullsrc=r=48000:cl=mono -t 400 -c:a pcm_u8 long.wav');
    const probed = await op('ffprobe', {
      argv: ['-v', 'error', '-of', 'json', '-show_packets', '-show_frames', 'long.wav'],
    });
    expect(probed).toMatchObject({ exitCode: 0, truncated: true });
    expect(Buffer.byteLength(JSON.stringify(probed))).toBeLessThan(MAX_INLINE_BYTES);
    expect((probed['stdout'] as string).length).toBeGreaterThan(2 << 20);
  });

  it('says what is wrong when a program has gone, and reports it to its owner', async () => {
    const programs = { ...kit.services.programs, ffmpeg: join(folder, 'gone') };
    expect(
      await code(
        ffmpeg('-f lavfi -i color=size=64x64:duration=1 a.mp4', {
          services: {
            programs,
            sandbox: { name: 'none', network: 'open', wrap: (command: never) => command, roots: () => [] },
          },
        }),
      ),
    ).toBe('ffmpeg_unavailable');
    expect(kit.lost).toEqual([expect.stringContaining('ENOENT')]);
  });
});

describe('the files of a session', () => {
  it('are read as utf8 when they are, as base64 when not, and never short [RB-MED-03]', async () => {
    await writeFile(join(dir, 'text.txt'), 'Größe: 4 €\r\n\u0000');
    await writeFile(join(dir, 'bytes.bin'), Buffer.from([0xff, 0xfe, 0x80]));
    expect(await op('read', { path: 'text.txt', maxBytes: 100 })).toEqual({
      content: 'Größe: 4 €\r\n\u0000',
      encoding: 'utf8',
      bytes: 17,
    });
    expect(await op('read', { path: './bytes.bin', maxBytes: 100 })).toEqual({
      content: '//6A',
      encoding: 'base64',
      bytes: 3,
    });
    expect(await code(op('read', { path: 'text.txt', maxBytes: 16 }))).toBe('file_too_large');
    await writeFile(join(dir, 'big.bin'), Buffer.alloc(3_500_000, 0xff));
    expect(await code(op('read', { path: 'big.bin', maxBytes: MAX_INLINE_BYTES }))).toBe('file_too_large');
    expect(await code(op('read', { path: 'missing.txt' }))).toBe('invalid_path');
  });

  it.each([
    '/etc/passwd',
    '../x',
    'a/../../x',
    'C:\\x',
    '\\\\host\\share',
    '~/x',
    'file:///x',
    'http://h/x',
    '',
    'a\0b',
    '.part-1',
    'x/.part-2',
  ])('are not found at %j [RB-REM-03]', async (path) => {
    for (const [name, args] of Object.entries({
      stat: { path },
      read: { path },
      publish: { path, putUrl: url('x') },
      stage: { url: url('x'), path },
    })) {
      expect(await code(op(name, args)), name).toBe('invalid_path');
    }
  });

  it('are never reached through a symlink [RB-REM-02] [RB-SEC-02]', async () => {
    await symlink('/etc', join(dir, 'link'));
    await symlink('/etc/hostname', join(dir, 'file'));
    for (const path of ['link/passwd', 'link', 'file']) {
      expect(await code(op('read', { path }))).toBe('invalid_path');
      expect(await code(op('stage', { url: url('in.mp4'), path }))).toBe('invalid_path');
    }
    expect(await op('close')).toEqual({});
    expect(await readdir(dir)).toEqual([]);
    expect((await stat('/etc/hostname')).isFile()).toBe(true);
  });

  it('have the errors of transfers named as the protocol names them [RB-ERR-02] [RB-URL-02]', async () => {
    objects.set('/ten', Buffer.alloc(10));
    await writeFile(join(dir, 'ten'), Buffer.alloc(10));
    expect(await code(op('stage', { url: url('ten'), path: 'a', maxBytes: 9 }))).toBe('file_too_large');
    expect(await code(op('stage', { url: url('none'), path: 'a', maxBytes: 9 }))).toBe('stage_failed');
    expect(await code(op('stage', { url: url('ten'), path: 'a', maxBytes: 10, sha256: '0'.repeat(64) }))).toBe(
      'stage_failed',
    );
    expect(
      await code(op('stage', { url: url('ten'), path: 'a', maxBytes: 10 }, { services: { sessionQuotaBytes: 12 } })),
    ).toBe('disk_full');
    expect(await code(op('publish', { path: 'ten', putUrl: url('out'), maxBytes: 9, contentType: 'a/b' }))).toBe(
      'output_too_large',
    );
    expect(await code(op('publish', { path: 'ten', putUrl: 'http://store.invalid/x', maxBytes: 10 }))).toBe(
      'publish_failed',
    );
    expect(await readdir(dir)).toEqual(['ten']);
  });

  it('belong to ops of this job type and sessions that exist only [RB-MED-01]', async () => {
    expect(await code(op('render', {}))).toBe('unsupported_op');
    expect(await code(op('toString', {}))).toBe('unsupported_op');
    expect(await code(op('read', { path: 7 }))).toBe('invalid_args');
    await rm(dir, { recursive: true });
    expect(await code(op('stat', { path: 'x' }))).toBe('session_lost');
  });
});
