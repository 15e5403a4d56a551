import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TailBuffer } from '../core/output-tail.js';
import { openFontSet } from '../fonts.js';
import { findPrograms, type Programs } from '../probe/programs.js';
import { runChild } from '../process/child.js';
import { childEnvironment } from '../process/child-environment.js';
import { ownerMarker } from '../process/marker.js';
import { noSandbox, type Sandbox } from './sandbox.js';
import { seatbeltProfile } from './sandbox-exec.js';
import { SandboxMissing, type SelectionParts, selectSandbox } from './select.js';
import { selfTest } from './self-test.js';

let folder: string;
let session: string;
let parts: SelectionParts;
let programs: Programs;
let sandbox: Sandbox;
let notes: string[] = [];
let runs = 0;
const owner = ownerMarker();
const nextMarker = (): string => {
  runs += 1;
  return `${owner}${runs}`;
};

/** The best of this machine, and Landlock where REELHOST_LANDLOCK_PATH names a folder with a setpriv that knows it (and no working bwrap). */
const landlockPath = process.env['REELHOST_LANDLOCK_PATH'];
const mechanisms: [string, string | undefined][] = [
  ['the best of this machine', undefined],
  ...(landlockPath ? [['landlock', landlockPath] as [string, string]] : []),
];

describe.each(mechanisms)('with %s', (mechanism, path) => {
  beforeAll(async () => {
    if (path !== undefined) process.env['REELHOST_SANDBOX_PATH'] = path;
    notes = [];
    folder = await mkdtemp(join(tmpdir(), 'reelhost-sandbox-'));
    session = join(folder, 'session');
    await mkdir(session);
    programs = await findPrograms({ variables: process.env, nextMarker });
    const fonts = await openFontSet(folder);
    parts = {
      ffmpeg: programs.ffmpeg,
      environment: childEnvironment({ home: fonts.home, temporary: fonts.home, fontconfigFile: fonts.fontconfigFile }),
      scratch: folder,
      readable: { paths: [fonts.folder, fonts.fontconfigFile] },
      nextMarker,
      note: (mechanism, reason) => notes.push(`${mechanism}: ${reason}`),
    };
    sandbox = await selectSandbox('auto', parts);
  });
  afterAll(() => {
    delete process.env['REELHOST_SANDBOX_PATH'];
    return rm(folder, { recursive: true, force: true });
  });

  async function ffmpeg(by: Sandbox, ...argv: string[]): Promise<{ exitCode: number; log: string }> {
    const command = by.wrap({
      program: programs.ffmpeg,
      argv: ['-nostdin', '-v', 'error', '-y', ...argv],
      sessionDir: session,
      environment: parts.environment,
    });
    const tail = new TailBuffer(4096);
    const outcome = await runChild({
      program: command.program,
      argv: command.argv,
      env: command.environment,
      cwd: session,
      marker: nextMarker(),
      timeoutMs: 20_000,
      onStderr: (chunk) => tail.feed(chunk),
    });
    return { exitCode: outcome.kind === 'ended' ? outcome.exitCode : -1, log: Buffer.from(tail.bytes()).toString() };
  }

  describe('the sandbox', () => {
    it('is chosen by a self-test and says which one it is', () => {
      // A machine without any mechanism is legitimate; there the choice must say so, and why.
      if (path !== undefined) expect(sandbox.name).toBe(mechanism);
      else if (sandbox.name === 'none') expect(notes.length).toBeGreaterThan(0);
      else expect(['bubblewrap', 'landlock', 'sandbox-exec']).toContain(sandbox.name);
    });

    it('runs ordinary work: encode, and text with the bundled font', async () => {
      const made = await ffmpeg(
        sandbox,
        '-f',
        'lavfi',
        '-i',
        'color=size=160x90:rate=5:duration=1',
        '-vf',
        'drawtext=text=Hello:fontsize=20:fontcolor=white',
        'text.mp4',
      );
      expect(made).toMatchObject({ exitCode: 0 });
      expect((await readFile(join(session, 'text.mp4'))).length).toBeGreaterThan(500);
    });

    it('shows nothing outside the session to raw argvs: absolute paths, parents, symlinks, playlists, filters', async () => {
      if (sandbox.name === 'none') return expect(notes.length).toBeGreaterThan(0);
      const outside = join(folder, 'outside');
      await mkdir(outside, { recursive: true });
      expect(
        await ffmpeg(noSandbox, '-f', 'lavfi', '-i', 'testsrc=duration=1:size=160x90', join(outside, 'private.ts')),
      ).toMatchObject({ exitCode: 0 });
      await writeFile(
        join(session, 'playlist.m3u8'),
        `#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:1,\n${outside}/private.ts\n#EXT-X-ENDLIST\n`,
      );
      await symlink(outside, join(session, 'link'));
      const attempts = [
        ['-i', `${outside}/private.ts`, '-c', 'copy', 'a.ts'],
        ['-i', '../outside/private.ts', '-c', 'copy', 'b.ts'],
        ['-i', 'link/private.ts', '-c', 'copy', 'c.ts'],
        ['-allowed_extensions', 'ALL', '-i', 'playlist.m3u8', '-c', 'copy', 'd.ts'],
        ['-f', 'lavfi', '-i', `movie=${outside}/private.ts`, '-frames:v', '1', 'e.png'],
        ['-f', 'lavfi', '-i', `color=size=64x64:duration=1,drawtext=textfile=/etc/passwd`, '-frames:v', '1', 'f.png'],
      ];
      for (const argv of attempts) {
        expect(await ffmpeg(noSandbox, ...argv), argv.join(' ')).toMatchObject({ exitCode: 0 });
        await rm(join(session, argv.at(-1) as string));
      }
      for (const argv of attempts) {
        const { exitCode } = await ffmpeg(sandbox, ...argv);
        expect(exitCode, argv.join(' ')).not.toBe(0);
      }
      await ffmpeg(sandbox, '-i', 'text.mp4', '-c', 'copy', join(outside, 'written.mp4'));
      await ffmpeg(sandbox, '-i', 'text.mp4', '-c', 'copy', '../written.mp4');
      await expect(readFile(join(outside, 'written.mp4'))).rejects.toMatchObject({ code: 'ENOENT' });
      await expect(readFile(join(folder, 'written.mp4'))).rejects.toMatchObject({ code: 'ENOENT' });
    });

    it('is not trusted when the canary can be read, or when work fails inside it', async () => {
      expect(await selfTest({ ...noSandbox, name: 'landlock' }, parts)).toContain('could be read');
      const broken: Sandbox = {
        ...noSandbox,
        name: 'bubblewrap',
        wrap: (command) => ({ ...command, program: '/bin/false' }),
      };
      expect(await selfTest(broken, parts)).toContain('work inside a session failed');
      const missing: Sandbox = {
        ...noSandbox,
        name: 'bubblewrap',
        wrap: (command) => ({ ...command, program: '/nowhere/bwrap' }),
      };
      expect(await selfTest(missing, parts)).toContain('ENOENT');
    });

    it('refuses to go on without one where one is required', async () => {
      const fake = join(folder, 'fake');
      await mkdir(fake);
      for (const name of ['bwrap', 'setpriv']) {
        // A pretender that runs the program without any protection.
        await writeFile(
          join(fake, name),
          '#!/bin/sh\n[ "$1" = --help ] && { echo --disable-userns --landlock-access; exit 0; }\nexit 1\n',
        );
        await chmod(join(fake, name), 0o755);
      }
      process.env['REELHOST_SANDBOX_PATH'] = fake;
      try {
        await expect(selectSandbox('required', parts)).rejects.toBeInstanceOf(SandboxMissing);
        expect((await selectSandbox('auto', parts)).name).toBe('none');
      } finally {
        if (path === undefined) delete process.env['REELHOST_SANDBOX_PATH'];
        else process.env['REELHOST_SANDBOX_PATH'] = path;
      }
      expect((await selectSandbox('off', parts)).name).toBe('none');
    });

    it('writes a Seatbelt profile that names the session and denies the network', () => {
      const profile = seatbeltProfile('/opt/homebrew/bin/ffmpeg', '/private/var/s "1"', ['/fonts']);
      expect(profile).toContain('(deny default)');
      expect(profile).toContain('(deny network*)');
      expect(profile).toContain('(allow file-read* file-write* (subpath "/private/var/s \\"1\\""))');
      expect(profile.split('(').length).toBe(profile.split(')').length);
    });
  });
});
