import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hardwareEncoders, parseEncoders, parseFilters } from '../core/feature-lists.js';
import { ownerMarker } from '../process/marker.js';
import { noSandbox } from '../sandbox/sandbox.js';
import { probeCapabilities } from './capabilities.js';
import { findPrograms, installHint, ProgramsMissing } from './programs.js';

let folder: string;
const owner = ownerMarker();
let runs = 0;
const nextMarker = (): string => {
  runs += 1;
  return `${owner}${runs}`;
};
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'reelhost-probe-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function program(name: string, script: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, `#!/bin/sh\n${script}\n`);
  await chmod(path, 0o755);
  return path;
}
const ask = (ffmpeg: string) =>
  probeCapabilities({
    ffmpeg,
    sandbox: noSandbox,
    environment: { PATH: '/usr/bin:/bin' },
    folder,
    nextMarker,
    timeoutMs: 700,
  });

describe('the programs of this computer', () => {
  it('are found as they are named, with their version', async () => {
    const found = await findPrograms({ variables: process.env, nextMarker });
    expect(found.ffmpeg).toMatch(/^\//);
    expect(found.version).not.toBe('unknown');
  });

  it('are asked for by the install command of the platform when there are none', async () => {
    const search = findPrograms({ variables: { PATH: folder }, nextMarker });
    await expect(search).rejects.toBeInstanceOf(ProgramsMissing);
    await expect(search).rejects.toThrow(installHint());
    expect(installHint('darwin')).toContain('brew install ffmpeg');
  });

  it('are refused when they are too old and nobody asked for them, when they are something else, or cannot run', async () => {
    const old = await program('ffmpeg', 'echo "ffmpeg version 4.2.7 Copyright"');
    await program('ffprobe', 'echo "ffprobe version 4.2.7 Copyright"');
    await expect(findPrograms({ variables: { PATH: folder }, nextMarker })).rejects.toThrow('older than 4.4');
    const named = await findPrograms({ ffmpeg: old, variables: { PATH: folder }, nextMarker });
    expect(named.warnings).toEqual([expect.stringContaining('fit for development only')]);
    const other = await program('other', 'echo hello');
    await expect(findPrograms({ ffmpeg: other, variables: { PATH: folder }, nextMarker })).rejects.toThrow(
      'does not call itself ffmpeg',
    );
    await expect(findPrograms({ ffmpeg: join(folder, 'none'), variables: {}, nextMarker })).rejects.toThrow(
      'there is nothing',
    );
  });
});

describe('the capabilities of an ffmpeg', () => {
  it('are what it lists', async () => {
    const found = await ask(process.env['REELHOST_FFMPEG'] ?? '');
    expect(found.encoders).toContain('libx264');
    expect(found.filters).toContain('drawtext');
    expect(found.filters.length).toBeGreaterThan(200);
  });

  it('are empty, and soon so, when it hangs, floods or crashes', async () => {
    const nothing = { encoders: [], filters: [], hardwareEncoders: [] };
    for (const script of ['sleep 600', 'exec yes " V..... libx264 flood"', 'kill -SEGV $$', 'exit 3']) {
      const startedAt = performance.now();
      expect(await ask(await program('bad', script)), script).toEqual(nothing);
      expect(performance.now() - startedAt).toBeLessThan(15_000);
    }
    expect(await ask(join(folder, 'missing'))).toEqual(nothing);
  });

  it('are read from its tables', () => {
    const encoders =
      ' V....D libx264              libx264 H.264\n V..... h264_nvenc           NVIDIA\n A....D aac                  AAC\n ------\n V..... = Video\n';
    expect(parseEncoders(encoders)).toEqual(['libx264', 'h264_nvenc', 'aac']);
    expect(hardwareEncoders(parseEncoders(encoders))).toEqual(['h264_nvenc']);
    const filters =
      ' ... abench            A->A       Benchmark\n TSC overlay           VV->V      Overlay\n .. scdet             V->V       Detect\n  | = Source or sink filter\n';
    expect(parseFilters(filters)).toEqual(['abench', 'overlay', 'scdet']);
  });
});
