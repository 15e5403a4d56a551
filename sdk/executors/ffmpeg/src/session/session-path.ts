/**
 * Maps a session-relative path of an op to a real one and refuses everything that is not inside the session directory.
 *
 * Lexically: no absolute path, no drive letter, backslash, home shorthand, scheme or NUL, nothing that climbs out after normalising. On disk: no component
 * may be a symlink (the last one included), every one before the last must be a folder. Names of our own temporary files are reserved.
 */
import { lstat, mkdir } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { TaskError } from '@reelhost/sdk';

/** Temporary files of transfers begin with this; an op may not name them. */
export const RESERVED_PREFIX = '.part-';
const MAX_PATH_BYTES = 4096;
const MAX_NAME_BYTES = 255;

/** `what` lies there now; a missing file has a folder to be created in only when `folder` is true. */
export interface SessionPath {
  /** Normalised, as the session sees it; `.` for the root. */
  relative: string;
  absolute: string;
  kind: 'file' | 'folder' | 'missing' | 'special';
  bytes: number;
}

/** @throws TaskError `invalid_path` with the reason. */
export function normalisePath(path: unknown): string {
  if (typeof path !== 'string' || path === '') throw invalid('a path is a non-empty string');
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) throw invalid(`a path has at most ${MAX_PATH_BYTES} bytes`);
  if (/[\0-\x1f\x7f]/.test(path)) throw invalid('a path has no control characters');
  if (path.startsWith('/') || path.includes('\\') || /^[A-Za-z]:/.test(path) || path.startsWith('~')) {
    throw invalid(`"${path}" looks like a path of the host; paths are relative to the session`);
  }
  if (/^[A-Za-z][A-Za-z0-9+.-]*:/.test(path)) throw invalid(`"${path}" has the form of a URL`);
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part === '..') {
      if (parts.pop() === undefined) throw invalid(`"${path}" leads out of the session`);
      continue;
    }
    if (Buffer.byteLength(part) > MAX_NAME_BYTES) throw invalid(`a name has at most ${MAX_NAME_BYTES} bytes`);
    if (part.startsWith(RESERVED_PREFIX)) throw invalid(`names that begin with "${RESERVED_PREFIX}" are reserved`);
    parts.push(part);
  }
  return parts.length === 0 ? '.' : parts.join('/');
}

/**
 * Looks a path up in the session directory `root`.
 * @throws TaskError `invalid_path` when it is outside, reserved, or leads through a symlink or a file.
 */
export async function resolveSessionPath(root: string, path: unknown): Promise<SessionPath> {
  const relative = normalisePath(path);
  const parts = relative === '.' ? [] : relative.split('/');
  let absolute = root;
  await checkSessionDir(root);
  let seen = await look(root);
  for (const [index, part] of parts.entries()) {
    if (seen === undefined) break;
    if (index > 0 && seen.kind !== 'folder') throw invalid(`"${parts.slice(0, index).join('/')}" is no folder`);
    absolute = join(absolute, part);
    seen = await look(absolute);
    if (seen?.kind === 'symlink') throw invalid(`"${relative}" leads through a symbolic link`);
  }
  absolute = join(root, ...parts);
  if (seen === undefined) return { relative, absolute, kind: 'missing', bytes: 0 };
  return { relative, absolute, kind: seen.kind === 'symlink' ? 'special' : seen.kind, bytes: seen.bytes };
}

/** @throws TaskError `session_lost` unless `root` is the absolute path of a real directory. */
export async function checkSessionDir(root: string): Promise<void> {
  const seen = isAbsolute(root) ? await look(root) : undefined;
  if (seen?.kind !== 'folder') throw new TaskError('session_lost', 'the session directory does not exist (any more)');
}

/** As above, for a file that will be created: its folders are made (0700). @throws TaskError `invalid_path`. */
export async function resolveTarget(root: string, path: unknown): Promise<SessionPath> {
  const target = await resolveSessionPath(root, path);
  if (target.relative === '.' || target.kind === 'folder') throw invalid(`"${target.relative}" is a folder`);
  if (target.kind === 'special') throw invalid(`"${target.relative}" is no regular file`);
  const parent = target.relative.split('/').slice(0, -1);
  if (parent.length > 0) await mkdir(join(root, ...parent), { recursive: true, mode: 0o700 });
  return target;
}

/** As above, for a file that must exist. @throws TaskError `invalid_path`. */
export async function resolveFile(root: string, path: unknown): Promise<SessionPath> {
  const source = await resolveSessionPath(root, path);
  if (source.kind === 'missing') throw invalid(`"${source.relative}" does not exist in the session`);
  if (source.kind !== 'file') throw invalid(`"${source.relative}" is no regular file`);
  return source;
}

async function look(
  path: string,
): Promise<{ kind: 'file' | 'folder' | 'symlink' | 'special'; bytes: number } | undefined> {
  try {
    const seen = await lstat(path);
    if (seen.isFile()) return { kind: 'file', bytes: seen.size };
    if (seen.isDirectory()) return { kind: 'folder', bytes: 0 };
    return { kind: seen.isSymbolicLink() ? 'symlink' : 'special', bytes: 0 };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new TaskError('invalid_path', `the path cannot be looked at (${code})`, { cause: error });
  }
}

function invalid(message: string): TaskError {
  return new TaskError('invalid_path', message);
}
