/**
 * The bundled fonts: drawtext and subtitles find them without any font of the system.
 *
 * Each child gets a fontconfig configuration of ours (FONTCONFIG_FILE) that names only this folder, and an empty home. The folder and its licence
 * are part of the package; the version is raised whenever a font is added, removed or replaced.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Compared by its numbers with `requires.fontsetVersion`. */
export const FONTSET_VERSION = '1.0.0';

/** What children need to know. Paths are absolute. */
export interface FontSet {
  version: string;
  /** The folder with the font files, read only. */
  folder: string;
  fontconfigFile: string;
  /** An empty directory, used as HOME and TMPDIR. */
  home: string;
}

/** Writes the fontconfig configuration into `scratch`, a private folder of this process. */
export async function openFontSet(scratch: string): Promise<FontSet> {
  const folder = fileURLToPath(new URL('../fonts', import.meta.url));
  const home = join(scratch, 'home');
  const fontconfigFile = join(scratch, 'fonts.conf');
  await mkdir(home, { mode: 0o700, recursive: true });
  await writeFile(fontconfigFile, fontconfig(folder), { mode: 0o644 });
  return { version: FONTSET_VERSION, folder, fontconfigFile, home };
}

function fontconfig(folder: string): string {
  const alias = (name: string, font: string): string =>
    `  <alias><family>${name}</family><prefer><family>${font}</family></prefer></alias>\n`;
  const path = folder.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${path}</dir>
${['sans-serif', 'sans', 'Sans', 'Arial', 'Helvetica', 'Verdana', 'serif'].map((name) => alias(name, 'DejaVu Sans')).join('')}${alias('monospace', 'DejaVu Sans Mono')}</fontconfig>
`;
}
