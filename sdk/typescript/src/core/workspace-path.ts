/**
 * Whether a text may name something inside a session directory, decided from the text alone and the same on every system.
 *
 * It refuses whatever any system, tool or decoder on the way could read as a way out: absolute forms, drives, UNC, streams,
 * parents, home shorthands, escapes, look-alikes that become separators or dots when they are normalised, invisible
 * characters. It must never repair a path: what is wrong is refused, except empty and `.` components, which are dropped.
 */

import { isWellFormed } from './unicode.js';

/** The longest path, in bytes of UTF-8. */
export const MAX_WORKSPACE_PATH_BYTES = 1_024;
/** The longest component of a path, in bytes of UTF-8. */
export const MAX_WORKSPACE_NAME_BYTES = 255;

/** A path that may be looked up, or the sentence that says why not. */
export type WorkspacePathResult =
  | { readonly ok: true; readonly parts: readonly string[] }
  | { readonly ok: false; readonly problem: string };

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
const INVISIBLE = /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff]/;
/** Joiners belong into Persian and Indic words and into emoji, so they are fine between characters beyond ASCII and nowhere else. */
const STRAY_JOINER = /(^|[\u0000-\u007f\u200c\u200d])[\u200c\u200d]|[\u200c\u200d]($|[\u0000-\u007f])/;
const ESCAPED = /%(?:2e|2f|5c|00|25)/i;
const DEVICE =
  /^(?:con|nul|aux|prn|conin\$|conout\$|clock\$|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3])(?:\.|$)/i;

function utf8Bytes(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }
  return bytes;
}

function wholeProblem(path: unknown): string | undefined {
  if (typeof path !== 'string' || path === '') return 'a path must be a non-empty string';
  if (!isWellFormed(path)) return 'a path must be valid Unicode';
  if (utf8Bytes(path) > MAX_WORKSPACE_PATH_BYTES) return `a path must have at most ${MAX_WORKSPACE_PATH_BYTES} bytes`;
  if (CONTROL.test(path)) return 'a path must not have control characters';
  if (INVISIBLE.test(path) || STRAY_JOINER.test(path))
    return 'a path must not have invisible or direction-changing characters';
  if (path.startsWith('/')) return 'a path must be relative to the session directory';
  if (path.includes('\\')) return 'a path must not have a backslash';
  if (path.includes(':')) return 'a path must not have a colon: it would be a drive, a stream or a URL';
  if (path.startsWith('~')) return 'a path must not begin with ~';
  if (path.startsWith('-')) return 'a path must not begin with -: it would be an option';
  if (ESCAPED.test(path)) return 'a path must not have percent-encoded dots, separators or NUL';
  return undefined;
}

function partProblem(part: string): string | undefined {
  if (part === '..') return 'a path must not have a component ..';
  if (utf8Bytes(part) > MAX_WORKSPACE_NAME_BYTES)
    return `a component must have at most ${MAX_WORKSPACE_NAME_BYTES} bytes`;
  const folded = part.normalize('NFKC');
  if (folded === '.' || folded === '..') return 'a component must not look like . or ..';
  if (folded !== part && /[/\\:]/.test(folded)) return 'a component must not have a look-alike of a separator';
  if (/[. \u00a0\u3000]$/.test(folded)) return 'a component must not end in a dot or a blank';
  if (folded.startsWith(' ')) return 'a component must not begin with a blank';
  if (DEVICE.test(folded)) return 'a component must not be the name of a Windows device';
  return undefined;
}

/** Reads a path; see the head of this file. No parts at all means the directory itself. */
export function readWorkspacePath(path: unknown): WorkspacePathResult {
  const problem = wholeProblem(path);
  if (problem !== undefined) return { ok: false, problem };
  const parts = (path as string).split('/').filter((part) => part !== '' && part !== '.');
  for (const part of parts) {
    const wrong = partProblem(part);
    if (wrong !== undefined) return { ok: false, problem: wrong };
  }
  return { ok: true, parts };
}
