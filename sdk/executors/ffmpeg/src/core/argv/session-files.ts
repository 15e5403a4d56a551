/**
 * The questions the validator asks about the session directory. It is the only thing it learns from outside its arguments; an adapter
 * answers synchronously and never follows a symbolic link.
 */

/**
 * What stands at a session-relative path. `symlink` also when a folder on the way is one (`at` names it); `other` is a FIFO, socket
 * or device; `links` is the number of hard links; `id` identifies the file itself (device and inode) whatever its name.
 */
export type FileFacts =
  | { kind: 'absent' }
  | { kind: 'file'; bytes: number; id: string; links: number }
  | { kind: 'directory'; id: string }
  | { kind: 'symlink'; at: string }
  | { kind: 'other' };

/** The beginning of a file: one character per byte (0-255), and whether that is all of it. */
export type FileHead = { bytes: string; whole: boolean };

/** Port to the session directory. Paths are relative, `/`-separated, without `.`, `..` or empty parts; `''` is the directory itself. */
export interface SessionFiles {
  facts(path: string): FileFacts;
  /** The first `maxBytes` of a regular file; undefined when it cannot be read. */
  head(path: string, maxBytes: number): FileHead | undefined;
  /** Names in a directory, without `.` and `..`; empty when it cannot be read. */
  names(directory: string): string[];
}
