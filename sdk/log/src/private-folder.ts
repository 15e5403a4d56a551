/**
 * Makes a folder for the owner only (0700), with the missing ones above it. By hand, because Node's recursive mkdir never returns below /proc, where
 * a folder cannot be made and "no such file" is the answer every time, and because it says "no such file" of a read-only file system.
 */
import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** An existing folder is left as it is. @throws the error of the file system, whose message names the folder that could not be made */
export function makePrivateFolder(path: string): void {
  if (isThere(path)) return;
  const above = dirname(path);
  if (above !== path) makePrivateFolder(above);
  if (isThere(path)) return;
  // The folder above is there, and yet the system says that it is not: as it does below /proc.
  const message = `ENOENT: no folder can be made in ${above}, mkdir '${path}'`;
  throw Object.assign(new Error(message), { code: 'ENOENT', path });
}

/** Makes it if the one above it is there; false when that one is missing. */
function isThere(path: string): boolean {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return false;
    if (code !== 'EEXIST' || statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
  return true;
}
