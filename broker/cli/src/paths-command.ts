/** `reelhost paths`: where things lie, whether or not they exist yet. */
import { hostPaths, type PathOptions } from './paths.js';
import { print, printJson } from './terminal.js';

/** Prints all places. */
export async function paths(options: PathOptions & { json?: boolean }): Promise<number> {
  const found = hostPaths(options);
  if (options.json === true) printJson({ schema: 'reelhost.paths/1', ...found });
  else for (const [name, path] of Object.entries(found)) print(`${name.padEnd(9)} ${path}`);
  return 0;
}
