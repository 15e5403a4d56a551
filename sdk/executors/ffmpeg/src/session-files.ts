/**
 * The validator's view of a real session directory: synchronous, every part of a path looked at with lstat, files opened without
 * following links. It must never leave the directory; callers hand it normalised relative paths only.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { FileFacts, FileHead, SessionFiles } from './core/argv/session-files.js';

/** Answers the validator's questions about `directory` (the real path of one session's directory). */
export function sessionFiles(directory: string): SessionFiles {
  return {
    facts: (path) => factsOf(directory, path),
    head: (path, maxBytes) => headOf(directory, path, maxBytes),
    names: (path) => {
      if (factsOf(directory, path).kind !== 'directory') return [];
      try {
        return readdirSync(join(directory, path));
      } catch {
        return [];
      }
    },
  };
}

function factsOf(directory: string, path: string): FileFacts {
  const parts = path === '' ? [] : path.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..')) return { kind: 'other' };
  let facts: FileFacts = one(directory, '');
  let at = directory;
  let name = '';
  for (const part of parts) {
    if (facts.kind === 'symlink' || facts.kind === 'other') return facts;
    if (facts.kind !== 'directory') return { kind: 'absent' };
    at = join(at, part);
    name = name === '' ? part : `${name}/${part}`;
    facts = one(at, name);
  }
  return facts;
}

function one(real: string, name: string): FileFacts {
  try {
    const stat = lstatSync(real, { bigint: true });
    const id = `${stat.dev}:${stat.ino}`;
    if (stat.isSymbolicLink()) return name === '' ? { kind: 'directory', id } : { kind: 'symlink', at: name };
    if (stat.isDirectory()) return { kind: 'directory', id };
    if (stat.isFile()) return { kind: 'file', bytes: Number(stat.size), id, links: Number(stat.nlink) };
    return { kind: 'other' };
  } catch {
    return { kind: 'absent' };
  }
}

function headOf(directory: string, path: string, maxBytes: number): FileHead | undefined {
  if (factsOf(directory, path).kind !== 'file') return undefined;
  let descriptor: number;
  try {
    descriptor = openSync(join(directory, path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return undefined;
  }
  try {
    if (!fstatSync(descriptor).isFile()) return undefined;
    const buffer = Buffer.alloc(maxBytes + 1);
    let length = 0;
    while (length < buffer.length) {
      const got = readSync(descriptor, buffer, length, buffer.length - length, length);
      if (got === 0) break;
      length += got;
    }
    return { bytes: buffer.toString('latin1', 0, Math.min(length, maxBytes)), whole: length <= maxBytes };
  } catch {
    return undefined;
  } finally {
    closeSync(descriptor);
  }
}
