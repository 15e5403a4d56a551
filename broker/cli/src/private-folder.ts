/**
 * Makes a folder for the owner only (0700), with the missing ones above it. By hand, because Node's recursive mkdir never returns below /proc, where
 * a folder cannot be made and "no such file" is the answer every time.
 */
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/** An existing folder is left as it is. @throws the error of the file system */
export function makePrivateFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    makePrivateFolder(dirname(path));
    mkdirSync(path, { mode: 0o700 });
  }
}
