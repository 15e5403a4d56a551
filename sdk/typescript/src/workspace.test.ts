/** Nothing leaves the session directory: not by its text, not by what lies on the disk, not by what changes meanwhile. */
import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readWorkspacePath } from './core/workspace-path.js';
import { Workspace } from './workspace.js';

let base = '';
let dir = '';
let workspace: Workspace;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'rh-ws-')));
  dir = join(base, 'session');
  mkdirSync(join(dir, 'sub'), { recursive: true });
  writeFileSync(join(base, 'outside'), 'secret');
  writeFileSync(join(dir, 'in.mp4'), 'video');
  writeFileSync(join(dir, 'sub', 'a.txt'), 'a');
  workspace = new Workspace(dir);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const REFUSED: readonly (readonly [string, unknown])[] = [
  ['an empty path', ''],
  ['a number', 7],
  ['nothing', undefined],
  ['an absolute path', '/etc/passwd'],
  ['a parent', '../outside'],
  ['a parent in the middle', 'sub/../in.mp4'],
  ['a parent at the end', 'sub/..'],
  ['a NUL', 'a\0b'],
  ['a line break', 'a\nb'],
  ['an escape character', 'a\u001b[31m'],
  ['a C1 control', 'a\u0085b'],
  ['a line separator', 'a\u2028b'],
  ['a right-to-left override', 'a\u202egpj.exe'],
  ['an isolate', 'a\u2066b'],
  ['a right-to-left mark', 'a\u200fb'],
  ['a zero-width space', 'a\u200bb'],
  ['a joiner where nothing joins', '.\u200d./x'],
  ['a character that some disks leave out', '..\u206a/x'],
  ['a byte order mark', '\ufeffa'],
  ['half a surrogate pair', 'a\ud800'],
  ['a backslash', 'sub\\a.txt'],
  ['a drive', 'C:/windows'],
  ['a drive-relative path', 'C:a'],
  ['a UNC path', '\\\\host\\share'],
  ['a UNC path with slashes', '//host/share'],
  ['a stream', 'in.mp4:hidden'],
  ['a URL', 'file:///etc/passwd'],
  ['a protocol of ffmpeg', 'concat:a|b'],
  ['a home directory', '~/x'],
  ['an option', '-i'],
  ['an encoded parent', '%2e%2e/outside'],
  ['an encoded slash', 'a%2Fb'],
  ['an encoded backslash', 'a%5cb'],
  ['a doubly encoded dot', '%252e'],
  ['an encoded NUL', 'a%00'],
  ['full-width dots', '\uff0e\uff0e/outside'],
  ['a two dot leader', '\u2025/outside'],
  ['a full-width slash', 'a\uff0fb'],
  ['a full-width backslash', 'a\uff3cb'],
  ['a full-width colon', 'c\uff1aa'],
  ['a trailing dot', 'a.'],
  ['a trailing blank', 'a '],
  ['a trailing no-break space', 'a\u00a0'],
  ['a leading blank', ' a'],
  ['a trailing dot inside', 'sub./a.txt'],
  ['the device CON', 'CON'],
  ['the device nul with an extension', 'nul.txt'],
  ['the device COM1', 'sub/com1.mp4'],
  ['the device LPT with a superscript', 'LPT\u00b9'],
  ['the console', 'CONIN$'],
  ['a component of 256 bytes', 'x'.repeat(256)],
  ['a path of 1,025 bytes', `${'x/'.repeat(512)}x`],
];

const ACCEPTED = [
  ...[
    'in.mp4',
    './in.mp4',
    'sub//a.txt',
    'sub/./a.txt',
    'v1.2..final.mp4',
    '.hidden',
    'Ünïcode 名前.mp4',
    'a b.mp4',
    '100%.mp4',
  ],
  ...[
    'console.log',
    'com10.txt',
    'auxiliary',
    'nullable',
    'clip (1) [x] {y} #z!.mp4',
    'x'.repeat(255),
    'a-b',
    '…a',
    'ﬁle.txt',
  ],
];

describe('a path', () => {
  it.each(REFUSED)('with %s is refused', async (_name, path) => {
    expect(() => workspace.normalize(path)).toThrow(expect.objectContaining({ code: 'invalid_path' }));
    for (const operation of ['resolve', 'input', 'output', 'openNew'] as const) {
      await expect(workspace[operation](path)).rejects.toMatchObject({ name: 'TaskError', code: 'invalid_path' });
    }
  });

  it.each(ACCEPTED)('like %j is fine', async (path) => {
    const entry = await workspace.resolve(path);
    expect(entry.absolute.startsWith(`${dir}/`)).toBe(true);
  });

  it('never leads out, whatever it is', () => {
    const odd = fc.constantFrom(
      '..',
      '.',
      '/',
      '\\',
      '．',
      '／',
      '%2e',
      ':',
      '~',
      '\0',
      'a',
      ' ',
      '-',
      '\u202e',
      'CON',
      '',
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.array(odd, { maxLength: 8 }).map((parts) => parts.join('')),
          fc.string({ unit: 'binary' }),
        ),
        (path) => {
          const read = readWorkspacePath(path);
          if (!read.ok) return;
          expect(join('/w/s', ...read.parts).startsWith('/w/s')).toBe(true);
          for (const part of read.parts) {
            expect(part.normalize('NFKC')).not.toMatch(/[/\\\0]|^\.{1,2}$/);
          }
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

describe('what lies on the disk', () => {
  it('is found as it is', async () => {
    expect(await workspace.resolve('.')).toMatchObject({ kind: 'folder', relative: '.', absolute: dir });
    expect(await workspace.resolve('in.mp4')).toMatchObject({ kind: 'file', bytes: 5 });
    expect(await workspace.resolve('sub')).toMatchObject({ kind: 'folder' });
    expect(await workspace.resolve('none/at/all')).toMatchObject({ kind: 'missing', relative: 'none/at/all' });
  });

  it('is refused when it is a link, anywhere on the way', async () => {
    symlinkSync(join(base, 'outside'), join(dir, 'link'));
    symlinkSync('in.mp4', join(dir, 'inside-link'));
    symlinkSync(base, join(dir, 'sub', 'up'));
    symlinkSync(join(dir, 'nowhere'), join(dir, 'dangling'));
    for (const path of ['link', 'inside-link', 'sub/up', 'sub/up/outside', 'dangling', 'sub/up/new.txt']) {
      for (const operation of ['resolve', 'input', 'output', 'openForReading'] as const) {
        await expect(workspace[operation](path), path).rejects.toMatchObject({ code: 'invalid_path' });
      }
    }
  });

  it('is refused when it is a hard link, a FIFO, a socket, or a folder where a file is meant', async () => {
    linkSync(join(base, 'outside'), join(dir, 'hard'));
    execFileSync('mkfifo', [join(dir, 'fifo')]);
    const server = createServer().listen(join(dir, 'sock'));
    await new Promise((resolve) => server.once('listening', resolve));
    try {
      for (const path of ['hard', 'fifo', 'sock', 'sub', '.']) {
        await expect(workspace.input(path), path).rejects.toMatchObject({ code: 'invalid_path' });
        await expect(workspace.output(path), path).rejects.toMatchObject({ code: 'invalid_path' });
        await expect(workspace.openForReading(path), path).rejects.toMatchObject({ code: 'invalid_path' });
      }
      await expect(workspace.input('in.mp4/x')).rejects.toMatchObject({ code: 'invalid_path' });
      await expect(workspace.output('in.mp4/x')).rejects.toMatchObject({ code: 'invalid_path' });
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it('gets folders made for an output, closed to others', async () => {
    const entry = await workspace.output('x/y/z.bin');
    expect(entry).toMatchObject({ kind: 'missing', relative: 'x/y/z.bin' });
    expect(statSync(join(dir, 'x/y')).mode & 0o777).toBe(0o700);
    expect(await workspace.output('in.mp4')).toMatchObject({ kind: 'file' });
  });

  it('is opened as it was checked', async () => {
    const handle = await workspace.openForReading('in.mp4');
    expect(await handle.readFile('utf8')).toBe('video');
    await handle.close();
    const fresh = await workspace.openNew('sub/new.bin');
    await fresh.writeFile('x');
    await fresh.close();
    expect(statSync(join(dir, 'sub/new.bin')).mode & 0o777).toBe(0o600);
    await expect(workspace.openNew('sub/new.bin')).rejects.toMatchObject({ code: 'invalid_path' });
  });

  it('is not read from outside while somebody swaps files for links', async () => {
    let swapping = true;
    const swap = (async () => {
      for (let turn = 0; swapping; turn += 1) {
        rmSync(join(dir, 'sub'), { recursive: true, force: true });
        if (turn % 2 === 0) symlinkSync(base, join(dir, 'sub'));
        else {
          mkdirSync(join(dir, 'sub'));
          writeFileSync(join(dir, 'sub', 'outside'), 'mine');
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    try {
      for (let attempt = 0; attempt < 3_000; attempt += 1) {
        try {
          const handle = await workspace.openForReading('sub/outside');
          const text = await handle.readFile('utf8').finally(() => handle.close());
          expect(text === 'mine' || text === '').toBe(true);
        } catch (error) {
          expect(error).toMatchObject({ code: expect.stringMatching(/^(invalid_path|ENOENT)$/) });
        }
      }
    } finally {
      swapping = false;
      await swap;
    }
  });

  it('may be gone: that is said as such', async () => {
    rmSync(dir, { recursive: true });
    await expect(workspace.input('in.mp4')).rejects.toMatchObject({ code: 'session_lost' });
    expect(() => new Workspace('relative')).toThrow(TypeError);
  });
});
