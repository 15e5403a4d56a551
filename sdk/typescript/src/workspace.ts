/**
 * The session directory as a task may see it: every path an outsider gives goes through here before it touches the disk.
 *
 * First the text is judged (core/workspace-path.ts), then every component on disk: none may be a symbolic link, the last one must be
 * a regular file with one name only (a hard link could be somebody else's file), or absent where a file is to be made. Files are opened
 * folder by folder, so that a link put anywhere in the meantime is not followed (where that cannot be done, what was opened is compared with what was checked).
 * All refusals are `TaskError` `invalid_path`.
 */
import { constants, existsSync, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, realpath } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { readWorkspacePath } from './core/workspace-path.js';
import { TaskError } from './errors.js';

/** What lies at a path. */
export interface WorkspaceEntry {
  /** As the session sees it, normalised; `.` for the directory itself. */
  readonly relative: string;
  readonly absolute: string;
  readonly kind: 'file' | 'folder' | 'missing';
  /** Size of a file, else 0. */
  readonly bytes: number;
}

function invalid(path: unknown, problem: string): TaskError {
  const shown =
    typeof path === 'string' ? JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path) : typeof path;
  return new TaskError('invalid_path', `${shown}: ${problem}`);
}

async function look(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** Linux: an open folder has a path of its own, whatever happens to its name. */
const HAS_FD_PATHS = existsSync('/proc/self/fd');

/** How the disk says that a path is not what it was when it was looked at. */
const CHANGED_MEANWHILE: ReadonlySet<string> = new Set([
  'ELOOP',
  'EMLINK',
  'EEXIST',
  'ENOENT',
  'ENOTDIR',
  'EISDIR',
  'ENXIO',
]);

/** Opens a file folder by folder, each from the handle of the one before and never through a link: no swap in between leads outside. */
async function openBelow(root: string, relative: string, flags: number, mode: number): Promise<FileHandle> {
  const parts = relative.split('/');
  const name = parts.pop() ?? '.';
  let folder = await open(root, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    for (const part of parts) {
      const next = await open(
        `/proc/self/fd/${folder.fd}/${part}`,
        constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW,
      );
      await folder.close();
      folder = next;
    }
    return await open(`/proc/self/fd/${folder.fd}/${name}`, flags, mode);
  } finally {
    await folder.close();
  }
}

/** A directory nothing may leave. */
export class Workspace {
  /** @throws TypeError when `dir` is not absolute: then this is a bug of the caller, not of the path's giver. */
  constructor(readonly dir: string) {
    if (!isAbsolute(dir)) throw new TypeError('a workspace directory must be absolute');
  }

  /** The normalised relative form of a path, decided from its text alone. @throws TaskError `invalid_path` */
  normalize(path: unknown): string {
    return this.#parts(path).join('/') || '.';
  }

  /** What lies at a path. A missing file is fine, a link or a special file is not. @throws TaskError `invalid_path` */
  async resolve(path: unknown): Promise<WorkspaceEntry> {
    const parts = this.#parts(path);
    const relative = parts.join('/') || '.';
    let absolute = this.dir;
    let stats = await this.#root();
    for (const [index, part] of parts.entries()) {
      if (!stats.isDirectory()) throw invalid(path, `${parts.slice(0, index).join('/')} is not a folder`);
      absolute = join(absolute, part);
      const next = await look(absolute);
      if (next === undefined) return { relative, absolute: join(this.dir, ...parts), kind: 'missing', bytes: 0 };
      if (next.isSymbolicLink()) throw invalid(path, 'it leads through a symbolic link');
      stats = next;
    }
    if (stats.isDirectory()) return { relative, absolute, kind: 'folder', bytes: 0 };
    if (!stats.isFile()) throw invalid(path, 'it is neither a regular file nor a folder');
    if (stats.nlink !== 1) throw invalid(path, 'it is a hard link');
    return { relative, absolute, kind: 'file', bytes: stats.size };
  }

  /** An existing regular file. @throws TaskError `invalid_path` */
  async input(path: unknown): Promise<WorkspaceEntry> {
    const entry = await this.resolve(path);
    if (entry.kind !== 'file') throw invalid(path, entry.kind === 'missing' ? 'it does not exist' : 'it is a folder');
    return entry;
  }

  /** A file that may be written: absent or regular. Missing folders above it are made (0700). @throws TaskError `invalid_path` */
  async output(path: unknown): Promise<WorkspaceEntry> {
    const parts = this.#parts(path);
    if (parts.length === 0) throw invalid(path, 'it is the session directory itself');
    const parent = await this.folder(parts.slice(0, -1).join('/') || '.');
    if (parent.kind !== 'folder') throw invalid(path, 'its parent is not a folder');
    const entry = await this.resolve(path);
    if (entry.kind === 'folder') throw invalid(path, 'it is a folder');
    return entry;
  }

  /** A folder, made (0700) with all above it when it is missing. @throws TaskError `invalid_path` */
  async folder(path: unknown): Promise<WorkspaceEntry> {
    const parts = this.#parts(path);
    let entry = await this.resolve('.');
    for (const index of parts.keys()) {
      const at = parts.slice(0, index + 1).join('/');
      entry = await this.resolve(at);
      if (entry.kind === 'file') throw invalid(path, `${at} is a file`);
      if (entry.kind === 'folder') continue;
      try {
        await mkdir(entry.absolute, { mode: 0o700 });
      } catch (error) {
        // Somebody made it meanwhile: look again, it may be a link.
        if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
      }
      entry = await this.resolve(at);
    }
    return entry;
  }

  /** Opens a file for reading; what is open is the file that was checked. @throws TaskError `invalid_path` */
  async openForReading(path: unknown): Promise<FileHandle> {
    const entry = await this.input(path);
    return this.#opened(path, entry, constants.O_RDONLY, 0);
  }

  /** Opens a new file (0600) for writing; it must not exist yet. @throws TaskError `invalid_path` */
  async openNew(path: unknown): Promise<FileHandle> {
    const entry = await this.output(path);
    if (entry.kind !== 'missing') throw invalid(path, 'it exists already');
    return this.#opened(path, entry, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  }

  async #opened(path: unknown, entry: WorkspaceEntry, flags: number, mode: number): Promise<FileHandle> {
    let handle: FileHandle;
    try {
      // O_NONBLOCK: a FIFO put there meanwhile must not hang us.
      const safely = flags | constants.O_NOFOLLOW | constants.O_NONBLOCK;
      handle = await (HAS_FD_PATHS
        ? openBelow(this.dir, entry.relative, safely, mode)
        : open(entry.absolute, safely, mode));
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : '';
      if (CHANGED_MEANWHILE.has(code)) throw invalid(path, 'it changed while it was opened');
      throw error;
    }
    try {
      const stats = await handle.stat();
      const isOurs = HAS_FD_PATHS || (await this.#isWhereItWas(entry, stats));
      if (!isOurs || !stats.isFile() || stats.nlink !== 1) throw invalid(path, 'it changed while it was opened');
      return handle;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** The second best where a path cannot be walked handle by handle: somebody who swaps folders at the right two moments is not noticed. */
  async #isWhereItWas(entry: WorkspaceEntry, stats: Stats): Promise<boolean> {
    const real = await realpath(entry.absolute);
    const now = await lstat(real);
    const inside = real === join(await realpath(this.dir), entry.relative);
    return inside && stats.ino === now.ino && stats.dev === now.dev;
  }

  #parts(path: unknown): readonly string[] {
    const read = readWorkspacePath(path);
    if (!read.ok) throw invalid(path, read.problem);
    return read.parts;
  }

  async #root(): Promise<Stats> {
    const stats = await look(this.dir);
    if (stats?.isDirectory() !== true)
      throw new TaskError('session_lost', 'the session directory does not exist any more');
    return stats;
  }
}
