/**
 * Maps a session-relative path of an op to a real one. The confinement itself is the SDK's Workspace (text judged first, then every component on
 * disk); this file adds what belongs to media sessions: names of our own temporary files are reserved.
 */
import { lstat } from 'node:fs/promises';
import { isAbsolute } from 'node:path';
import { TaskError, Workspace, type WorkspaceEntry } from '@reelhost/sdk';

/** Temporary files of transfers begin with this; an op may not name them. */
export const RESERVED_PREFIX = '.part-';

/** @throws TaskError `session_lost` unless `root` is the absolute path of a real directory. */
export async function checkSessionDir(root: string): Promise<void> {
  const seen = isAbsolute(root) ? await lstat(root).catch(() => undefined) : undefined;
  if (!seen?.isDirectory()) throw new TaskError('session_lost', 'the session directory does not exist (any more)');
}

/** What lies at a path, `missing` included. @throws TaskError `invalid_path`. */
export async function resolveSessionPath(root: string, path: unknown): Promise<WorkspaceEntry> {
  return workspaceFor(root, path).resolve(path);
}

/** A file that will be written: its folders are made (0700). @throws TaskError `invalid_path`. */
export async function resolveTarget(root: string, path: unknown): Promise<WorkspaceEntry> {
  return workspaceFor(root, path).output(path);
}

/** A regular file that must exist. @throws TaskError `invalid_path`. */
export async function resolveFile(root: string, path: unknown): Promise<WorkspaceEntry> {
  return workspaceFor(root, path).input(path);
}

function workspaceFor(root: string, path: unknown): Workspace {
  const workspace = new Workspace(root);
  if (
    workspace
      .normalize(path)
      .split('/')
      .some((part) => part.startsWith(RESERVED_PREFIX))
  ) {
    throw new TaskError('invalid_path', `names that begin with "${RESERVED_PREFIX}" are reserved`);
  }
  return workspace;
}
