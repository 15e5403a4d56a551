/**
 * Folders for the owner only (0700), with the missing ones above them. Made by hand, because Node's recursive mkdir never returns below /proc, where
 * a folder cannot be made and "no such file" is the answer every time, and because it says "no such file" of a read-only file system.
 *
 * A folder is closed to others only when it is ours or nobody's: a daemon of root that is given `/` or `/etc` by mistake must not take it from everybody. What
 * is put into an open one is private all the same.
 */
import { chmodSync, mkdirSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** Why a folder is not taken as a state directory; the message says what to do. */
export class StateFolderError extends Error {
  override readonly name = 'StateFolderError';
  constructor(
    readonly code: 'invalid_state_dir' | 'shared_state_dir' | 'foreign_state_dir',
    message: string,
  ) {
    super(message);
  }
}

/** What a daemon of ours leaves in its state directory. */
const OURS = /^(?:broker|bridge|up)\.|^(?:sessions|space-reserve)/;
/** What a file system puts into a folder by itself. */
const NOBODYS = 'lost+found';

/**
 * Makes a state directory when it is missing, closes it to others unless it holds other things that they may read, and answers its real path.
 * @throws StateFolderError when it is somebody else's, or others may write there; the error of the file system when it cannot be made
 */
export function takeStateFolder(path: string): string {
  if (path === '') throw new StateFolderError('invalid_state_dir', '--state-dir must not be empty');
  makePrivateFolder(resolve(path));
  const folder = realpathSync(path);
  const { mode, uid } = statSync(folder);
  if ((mode & 0o1002) !== 0) throw shared(folder);
  const own = process.getuid?.() ?? uid;
  if (uid !== own) {
    throw new StateFolderError(
      'foreign_state_dir',
      `${folder} belongs to user ${uid}, this process runs as user ${own}: run it as that user, give the folder to this one (chown ${own} ${folder}) or name another one`,
    );
  }
  if ((mode & 0o077) === 0) return folder;
  if (!isOthers(folder)) chmodSync(folder, 0o700);
  else if ((mode & 0o020) !== 0) throw shared(folder);
  return folder;
}

function shared(folder: string): StateFolderError {
  const message = `${folder} is shared with others; name a folder of its own, for instance ${join(folder, 'reelhost')}`;
  return new StateFolderError('shared_state_dir', message);
}

/** Whether a folder holds things, and nothing of ours. */
function isOthers(folder: string): boolean {
  const names = readdirSync(folder).filter((name) => name !== NOBODYS);
  return names.length > 0 && !names.some((name) => OURS.test(name));
}

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
