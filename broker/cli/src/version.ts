/** Which versions take part: for `--version`, `version`, and the reports people send in. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { print, printJson } from './terminal.js';

const own = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };

/** The version of this command. */
export const version = own.version;

const PARTS = ['@reelhost/broker', '@reelhost/bridge', '@reelhost/executor-ffmpeg', '@reelhost/sdk', 'better-sqlite3'];

/** `reelhost version`: the installed versions, without starting anything. */
export async function printVersions(options: { json?: boolean }): Promise<number> {
  const parts = Object.fromEntries(PARTS.map((name) => [name, installedVersion(name)]));
  if (options.json === true) {
    const { platform, arch, versions } = process;
    printJson({ schema: 'reelhost.version/1', reelhost: version, node: versions.node, platform, arch, parts });
    return 0;
  }
  print(`reelhost ${version} (node ${process.versions.node}, ${process.platform} ${process.arch})`);
  for (const [name, found] of Object.entries(parts)) print(`  ${name.padEnd(28)} ${found ?? 'not installed'}`);
  return 0;
}

/** Reads a package.json without loading the package: the folder is found the way Node finds it. */
function installedVersion(name: string): string | null {
  const require = createRequire(import.meta.url);
  for (const folder of require.resolve.paths(name) ?? []) {
    try {
      const text = readFileSync(join(folder, name, 'package.json'), 'utf8');
      return (JSON.parse(text) as { version: string }).version;
    } catch {
      // Not in this folder; the next one up may have it.
    }
  }
  return null;
}
