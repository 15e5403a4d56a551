/**
 * The edges of media ops: nothing, exactly as much as allowed, one more, no declared length, another host, a folder or a link in a file's
 * place, a session that has gone, two sessions at once.
 */
import { createHash } from 'node:crypto';
import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { codeOf as code, type MediaKit, type MediaSession, openMediaKit } from './media-session.test-kit.js';

let kit: MediaKit;
let session: MediaSession;
let store: http.Server;
let asked: string[] = [];
const objects = new Map<string, Buffer>();
const TEN = Buffer.from('0123456789');

beforeAll(async () => {
  kit = await openMediaKit();
  store = http.createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://h');
    asked.push(`${request.method} ${pathname}`);
    if (request.method === 'GET') {
      if (pathname === '/moved') {
        response.writeHead(302, { location: url('ten') }).end();
        return;
      }
      // Without a declared length the answer is chunked.
      const found = objects.get(pathname.replace('/chunked', '')) ?? Buffer.alloc(0);
      response.writeHead(200, pathname.startsWith('/chunked') ? {} : { 'content-length': found.length });
      response.end(found);
      return;
    }
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      objects.set(pathname, Buffer.concat(chunks));
      response.writeHead(200).end();
    });
  });
  await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve));
  objects.set('/ten', TEN);
  objects.set('/empty', Buffer.alloc(0));
});
afterAll(async () => {
  await kit.close();
  store.closeAllConnections();
  await new Promise((resolve) => store.close(resolve));
});
beforeEach(async () => {
  session = await kit.session();
  asked = [];
});

function url(key: string): string {
  return `http://127.0.0.1:${(store.address() as AddressInfo).port}/${key}?X-Amz-Signature=canary`;
}
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
const write = (name: string, content: Buffer | string): Promise<void> => writeFile(join(session.dir, name), content);

describe('a transfer', () => {
  it.each(['ten', 'chunked/ten'])('of %s may have exactly maxBytes and not one more', async (key) => {
    const args = { url: url(key), path: 'a' };
    expect(await session.op('stage', { ...args, maxBytes: 10 })).toEqual({ bytes: 10, sha256: sha256(TEN) });
    expect(await code(session.op('stage', { ...args, path: 'b', maxBytes: 9 }))).toBe('file_too_large');
    expect(await readdir(session.dir)).toEqual(['a']);
  });

  it.each(['empty', 'chunked/empty'])('of %s makes an empty file, whatever the limit', async (key) => {
    const empty = { bytes: 0, sha256: sha256(Buffer.alloc(0)) };
    expect(await session.op('stage', { url: url(key), path: 'x/e', maxBytes: 0 })).toEqual(empty);
    expect(await session.op('publish', { path: 'x/e', putUrl: url('put'), maxBytes: 0, contentType: 'a/b' })).toEqual(
      empty,
    );
    expect(objects.get('/put')).toEqual(Buffer.alloc(0));
  });

  it('takes a digest in upper case, answers in lower case, and refuses another one', async () => {
    const args = { url: url('ten'), path: 'a', maxBytes: 10 };
    const digest = sha256(TEN);
    expect(await session.op('stage', { ...args, sha256: digest.toUpperCase() })).toEqual({ bytes: 10, sha256: digest });
    expect(await code(session.op('stage', { ...args, sha256: sha256(Buffer.alloc(1)) }))).toBe('stage_failed');
    expect(await session.file('a')).toEqual(TEN);
  });

  it('takes null for an argument that is left out', async () => {
    expect(await session.op('stage', { url: url('ten'), path: 'a', maxBytes: null, sha256: null })).toMatchObject({
      bytes: 10,
    });
    const more = { maxBytes: null, contentType: null };
    expect(await session.op('publish', { path: 'a', putUrl: url('put'), ...more })).toMatchObject({ bytes: 10 });
    expect(await session.op('read', { path: 'a', maxBytes: null })).toMatchObject({ bytes: 10 });
  });

  it('follows no redirect, not even to the same host', async () => {
    expect(await code(session.op('stage', { url: url('moved'), path: 'a', maxBytes: 10 }))).toBe('stage_failed');
    expect(asked).toEqual(['GET /moved']);
    expect(await readdir(session.dir)).toEqual([]);
  });

  it('sends no more than maxBytes and than the cap of the job, and asks nobody when there is more', async () => {
    await write('a', TEN);
    const args = { path: 'a', putUrl: url('put'), contentType: 'a/b' };
    expect(await session.op('publish', { ...args, maxBytes: 10 })).toEqual({ bytes: 10, sha256: sha256(TEN) });
    asked = [];
    expect(await code(session.op('publish', { ...args, maxBytes: 9 }))).toBe('output_too_large');
    const capped = session.op('publish', { ...args, maxBytes: 10 }, { limits: { maxOutputBytes: 9 } });
    expect(await code(capped)).toBe('output_too_large');
    expect(asked).toEqual([]);
  });
});

describe('the files of a session', () => {
  it('are read when they are empty and up to exactly maxBytes', async () => {
    await write('empty', '');
    await write('ten', TEN);
    expect(await session.op('read', { path: 'empty', maxBytes: 0 })).toEqual({
      content: '',
      encoding: 'utf8',
      bytes: 0,
    });
    expect(await session.op('read', { path: 'ten', maxBytes: 10 })).toMatchObject({ bytes: 10 });
    expect(await code(session.op('read', { path: 'ten', maxBytes: 9 }))).toBe('file_too_large');
  });

  it('are told from folders, from links and from nothing', async () => {
    await mkdir(join(session.dir, 'folder'));
    await symlink('/etc/hostname', join(session.dir, 'link'));
    expect(await session.op('stat', { path: 'folder' })).toEqual({ exists: true, bytes: 0 });
    expect(await session.op('stat', { path: 'none/at/all' })).toEqual({ exists: false, bytes: 0 });
    expect(await code(session.op('stat', { path: 'link' }))).toBe('invalid_path');
    expect(await code(session.op('read', { path: 'folder' }))).toBe('invalid_path');
    expect(await code(session.op('publish', { path: 'folder', putUrl: url('put') }))).toBe('invalid_path');
    expect(await code(session.op('stage', { url: url('ten'), path: 'folder', maxBytes: 10 }))).toBe('invalid_path');
  });

  it('may have names of any script, the same in every op', async () => {
    const name = 'می\u200cخواهم 👩\u200d👧.wav';
    await session.encode(['-f', 'lavfi', '-i', 'anullsrc', '-t', '0.1', name]);
    expect(await session.op('stat', { path: name })).toMatchObject({ exists: true });
    expect(await session.op('publish', { path: name, putUrl: url('put') })).toMatchObject({
      bytes: objects.get('/put')?.length,
    });
    for (const wrong of ['a\u200db.wav', '.\u200d./a.wav', 'in\u206a.wav'])
      expect(await code(session.op('stat', { path: wrong }))).toBe('invalid_path');
  });

  it('are lost with their session, and every op says so', async () => {
    await rm(session.dir, { recursive: true });
    for (const [op, args] of Object.entries({
      stage: { url: url('ten'), path: 'a', maxBytes: 10 },
      ffmpeg: { argv: ['-f', 'lavfi', '-i', 'color', '-t', '1', 'a.mp4'] },
      ffprobe: { argv: ['a.mp4'] },
      read: { path: 'a' },
      stat: { path: 'a' },
      publish: { path: 'a', putUrl: url('put') },
      close: {},
    }))
      expect(await code(session.op(op, args)), op).toBe('session_lost');
  });

  it('of two sessions at once stay apart', async () => {
    const other = await kit.session();
    const line = '-f lavfi -i color=size=64x64:duration=1 same.mp4';
    const results = await Promise.all([session.ffmpeg(line), other.ffmpeg(line)]);
    expect(results).toEqual([expect.objectContaining({ exitCode: 0 }), expect.objectContaining({ exitCode: 0 })]);
    await session.op('close');
    expect(await readdir(session.dir)).toEqual([]);
    expect(await readdir(other.dir)).toEqual(['same.mp4']);
  });
});

describe('a program', () => {
  it('that ends before anybody looked has its quota all the same', async () => {
    const frames = '-f lavfi -i testsrc2=size=640x360:rate=25 -frames:v 10 f%02d.bmp';
    expect(await code(session.ffmpeg(frames, { services: { sessionQuotaBytes: 3 << 20 } }))).toBe('disk_full');
    expect(await readdir(session.dir)).toEqual([]);
  });

  it('has what it prints about media left as it is, but for paths of the host', async () => {
    const comment = `https://host/session/1 ${session.dir}/x`;
    await session.encode(['-f', 'lavfi', '-i', 'anullsrc', '-t', '0.1', '-metadata', `comment=${comment}`, 'a.mka']);
    const probed = await session.op('ffprobe', { argv: ['-v', 'error', '-show_format', '-of', 'json', 'a.mka'] });
    expect(probed['stdout']).toContain('https://host/session/1 x"');
    expect(probed).not.toHaveProperty('truncated');
  });

  it.each([{ argv: [] }, { argv: Array.from({ length: 5_000 }, () => '-y') }])(
    'is not started for an argv that is none',
    async (args) => {
      expect(await code(session.op('ffmpeg', args))).toBe('argv_not_allowed');
      expect(await code(session.op('ffprobe', { ...args, timeoutSec: null }))).toBe('argv_not_allowed');
    },
  );
});
