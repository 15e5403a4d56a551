import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TailBuffer } from '../core/output-tail.js';
import { openFontSet } from '../fonts.js';
import { findPrograms } from '../probe/programs.js';
import { runChild } from '../process/child.js';
import { childEnvironment } from '../process/child-environment.js';
import { ownerMarker } from '../process/marker.js';
import { reportSandbox } from '../sandbox-report.js';
import { openLoopbackTrap } from './loopback-trap.js';
import { noSandbox, type Sandbox } from './sandbox.js';
import { seatbeltProfile } from './sandbox-exec.js';
import { SandboxMissing, type SelectionParts, selectSandbox, usableSandboxes } from './select.js';
import { selfTest } from './self-test.js';

const owner = ownerMarker();
let runs = 0;
const nextMarker = (): string => {
  runs += 1;
  return `${owner}${runs}`;
};

/** A folder with a setpriv that knows Landlock, for machines whose own is older. */
const landlockPath = process.env['REELHOST_LANDLOCK_PATH'];
if (landlockPath) process.env['REELHOST_SANDBOX_PATH'] = landlockPath;

const folder = await mkdtemp(join(tmpdir(), 'reelhost-sandbox-'));
const programs = await findPrograms({ variables: process.env, nextMarker });
const fonts = await openFontSet(folder);
const notes: string[] = [];
const parts: SelectionParts = {
  ffmpeg: programs.ffmpeg,
  environment: childEnvironment({ home: fonts.home, temporary: fonts.home, fontconfigFile: fonts.fontconfigFile }),
  scratch: folder,
  readable: { paths: [fonts.folder, fonts.fontconfigFile] },
  nextMarker,
  note: (mechanism, reason) => notes.push(`${mechanism}: ${reason}`),
};
const sandboxes = await usableSandboxes(parts);

afterAll(() => {
  delete process.env['REELHOST_SANDBOX_PATH'];
  return rm(folder, { recursive: true, force: true });
});

describe.each([...sandboxes])('in %s', (name, sandbox) => {
  let home: string;
  let session: string;
  beforeAll(async () => {
    home = join(folder, name.replaceAll(' ', '-'));
    session = join(home, 'session');
    await mkdir(session, { recursive: true });
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
    const outside = join(home, 'outside');
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
    await expect(readFile(join(home, 'written.mp4'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('reaches nobody over the network, or says that it might', async () => {
    const trap = await openLoopbackTrap();
    try {
      const attempts = [
        ['-i', 'text.mp4', '-c', 'copy', '-f', 'mpegts', `tcp://127.0.0.1:${trap.tcp}`],
        ['-i', 'text.mp4', '-c', 'copy', '-f', 'mpegts', `udp://127.0.0.1:${trap.udp}`],
        ['-i', `http://127.0.0.1:${trap.tcp}/in.mp4`, '-t', '1', '-rw_timeout', '500000', 'got.mp4'],
        ['-f', 'lavfi', '-i', `movie=tcp\\\\://127.0.0.1\\\\:${trap.tcp}`, '-frames:v', '1', 'g.png'],
      ];
      for (const argv of attempts.slice(0, sandbox.network === 'closed' ? 4 : 2)) await ffmpeg(sandbox, ...argv);
      expect(await trap.reached()).toEqual(sandbox.network === 'closed' ? [] : ['tcp', 'udp']);
    } finally {
      await trap.close();
    }
  });
});

describe('the choice of a sandbox', () => {
  it('falls on the first that passes its self-test, and says why others were not taken', async () => {
    const [first] = sandboxes.values();
    expect((await selectSandbox('auto', parts)).name).toBe(first?.name ?? 'none');
    // A machine without any mechanism is legitimate; there the choice must say so, and why.
    if (first === undefined) expect(notes.length).toBeGreaterThan(0);
    expect(await reportSandbox(process.env)).toMatchObject({
      name: first?.name ?? 'none',
      network: first?.network ?? 'open',
    });
    if (landlockPath) expect([...sandboxes.keys()]).toContain('landlock with a call filter');
  });

  it('prefers what closes the network to what does not', () => {
    const networks = [...sandboxes.values()].map(({ network }) => network);
    expect(networks).toEqual([...networks].sort());
  });

  it('does not trust one whose canary can be read, whose network can be reached, or that breaks the work', async () => {
    const trial = async (sandbox: Sandbox): Promise<string> => {
      const result = await selfTest(sandbox, parts);
      return result.holds ? 'holds' : result.reason;
    };
    expect(await trial({ ...noSandbox, name: 'landlock' })).toContain('could be read');
    const broken: Sandbox = {
      ...noSandbox,
      name: 'bubblewrap',
      wrap: (command) => ({ ...command, program: '/bin/false' }),
    };
    expect(await trial(broken)).toContain('work inside a session failed');
    const missing: Sandbox = {
      ...noSandbox,
      name: 'bubblewrap',
      wrap: (command) => ({ ...command, program: '/nowhere/bwrap' }),
    };
    expect(await trial(missing)).toContain('ENOENT');
    const open = [...sandboxes.values()].find(({ network }) => network === 'open');
    if (open) expect(await trial({ ...open, network: 'closed' })).toBe('the network could be reached by tcp and udp');
  });

  it('refuses to go on without one where one is required', async () => {
    const before = process.env['REELHOST_SANDBOX_PATH'];
    const fake = join(folder, 'fake');
    await mkdir(fake);
    for (const name of ['bwrap', 'setpriv', 'unshare']) {
      // A pretender that runs the program without any protection.
      await writeFile(
        join(fake, name),
        '#!/bin/sh\n[ "$1" = --help ] && { echo --disable-userns --landlock-access --seccomp-filter; exit 0; }\nexit 1\n',
      );
      await chmod(join(fake, name), 0o755);
    }
    process.env['REELHOST_SANDBOX_PATH'] = fake;
    try {
      await expect(selectSandbox('required', parts)).rejects.toBeInstanceOf(SandboxMissing);
      expect((await selectSandbox('auto', parts)).name).toBe('none');
    } finally {
      if (before === undefined) delete process.env['REELHOST_SANDBOX_PATH'];
      else process.env['REELHOST_SANDBOX_PATH'] = before;
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
