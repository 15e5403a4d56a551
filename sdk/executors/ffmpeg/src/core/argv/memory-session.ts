/**
 * A session directory that exists in memory only: for tests, and for whoever wants to judge an argv before anything is staged.
 */
import type { FileFacts, SessionFiles } from './session-files.js';

/** What stands at a path: `link:` and `special:` are a symbolic link and a FIFO, `linked:` a file with two hard links; all else is content. */
export type MemoryEntries = Readonly<Record<string, string>>;

/** A session with these files; folders follow from the names, a name that ends in `/` is an empty folder. */
export function memorySession(entries: MemoryEntries): SessionFiles {
  const paths = Object.keys(entries);
  const isFolder = (path: string): boolean => path === '' || paths.some((one) => one.startsWith(`${path}/`));
  const facts = (path: string): FileFacts => {
    const parts = path.split('/');
    for (let count = 1; count < parts.length; count++) {
      const parent = parts.slice(0, count).join('/');
      if (entries[parent]?.startsWith('link:') === true) return { kind: 'symlink', at: parent };
    }
    const content = Object.hasOwn(entries, path) ? entries[path] : undefined;
    if (content === undefined) return isFolder(path) ? { kind: 'directory', id: `d:${path}` } : { kind: 'absent' };
    if (content.startsWith('link:')) return { kind: 'symlink', at: path };
    if (content.startsWith('special:')) return { kind: 'other' };
    return { kind: 'file', bytes: content.length, id: `f:${path}`, links: content.startsWith('linked:') ? 2 : 1 };
  };
  return {
    facts,
    head: (path, maxBytes) => {
      const content = entries[path];
      return facts(path).kind === 'file' && content !== undefined
        ? { bytes: content.slice(0, maxBytes), whole: content.length <= maxBytes }
        : undefined;
    },
    names: (folder) => {
      const prefix = folder === '' ? '' : `${folder}/`;
      const inside = paths.filter((path) => path.startsWith(prefix) && path !== prefix);
      return [...new Set(inside.map((path) => path.slice(prefix.length).split('/')[0] ?? ''))];
    },
  };
}
