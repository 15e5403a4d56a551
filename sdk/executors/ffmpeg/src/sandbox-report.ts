/**
 * Which sandbox the executor would choose on this computer, for `reelhost doctor`: the same search, the same self-test. It works in a private temporary folder
 * that is removed, and changes nothing else.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFontSet } from './fonts.js';
import { findPrograms } from './probe/programs.js';
import { childEnvironment } from './process/child-environment.js';
import { ownerMarker } from './process/marker.js';
import type { Sandbox, SandboxName } from './sandbox/sandbox.js';
import { selectSandbox } from './sandbox/select.js';

/** The choice. `notTaken` has a sentence for each mechanism that comes before it and did not pass. */
export interface SandboxReport {
  name: SandboxName;
  network: Sandbox['network'];
  notTaken: readonly string[];
}

/** Takes a second or two: ffmpeg is started several times. @throws ProgramsMissing when there is no ffmpeg to try it with. */
export async function reportSandbox(variables: Readonly<Record<string, string | undefined>>): Promise<SandboxReport> {
  const scratch = await mkdtemp(join(tmpdir(), 'reelhost-sandbox-report-'));
  const owner = ownerMarker();
  let children = 0;
  const nextMarker = (): string => {
    children += 1;
    return `${owner}${children}`;
  };
  try {
    const programs = await findPrograms({ variables, nextMarker });
    const fonts = await openFontSet(scratch);
    const notTaken: string[] = [];
    const { name, network } = await selectSandbox('auto', {
      ffmpeg: programs.ffmpeg,
      readable: { paths: [fonts.folder, fonts.fontconfigFile] },
      environment: childEnvironment({
        home: fonts.home,
        temporary: fonts.home,
        fontconfigFile: fonts.fontconfigFile,
      }),
      scratch,
      nextMarker,
      note: (mechanism, reason) => notTaken.push(`${mechanism}: ${reason}`),
    });
    return { name, network, notTaken };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
