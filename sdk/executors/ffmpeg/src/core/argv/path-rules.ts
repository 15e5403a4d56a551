/**
 * Which names may stand for a file of the session: pure string rules, the same on every operating system, so that an argv accepted on
 * Linux means nothing worse on macOS. Says nothing about what exists on disk (see session-paths.ts).
 */
import type { Problem } from './verdict.js';
import { hasLoneSurrogate, utf8Bytes } from './words.js';

/** Longest path in UTF-8 bytes. */
export const MAX_PATH_BYTES = 1_024;
/** Longest part of a path in UTF-8 bytes. */
export const MAX_COMPONENT_BYTES = 255;

const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;
/** Joiners belong into Persian and Indic words and into emoji, so they are fine between characters beyond ASCII and nowhere else. */
const STRAY_JOINER = /(^|[\u0000-\u007f\u200c\u200d])[\u200c\u200d]|[\u200c\u200d]($|[\u0000-\u007f])/;
const WINDOWS_DEVICE = /^(con|nul|prn|aux|clock\$|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\.|$)/i;
const PROTOCOL_COMMA =
  /^(async|bluray|cache|concat|concatf|crypto|data|fd|ffrtmp|file|ftp|gopher|http|https|hls|md5|mms|pipe|rtmp|rtp|rtsp|sctp|sftp|shared|smb|srt|subfile|tcp|tee|tls|udp|unix|zmq),/i;

/** Why `path` may not name a session file, or undefined. `path` is what ffmpeg would be given. */
export function pathProblem(path: string): Problem | undefined {
  if (path === '')
    return { rule: 'path.empty', message: 'a file name is expected; name a file of the session, such as "clip.mp4"' };
  if (hasLoneSurrogate(path)) return { rule: 'path.unicode', message: 'the name is not valid Unicode' };
  if (utf8Bytes(path) > MAX_PATH_BYTES)
    return { rule: 'path.long', message: `a path may have ${MAX_PATH_BYTES} bytes` };
  if (INVISIBLE.test(path) || STRAY_JOINER.test(path))
    return { rule: 'path.invisible', message: 'a path may not contain control, direction or zero-width characters' };
  if (/^[a-z0-9+.-]+:/i.test(path))
    return {
      rule: 'path.scheme',
      message:
        'URLs and protocol prefixes ("scheme:") are not allowed; stage the object and name it by its session path',
    };
  if (path.includes(':')) return { rule: 'path.colon', message: 'a path may not contain ":"' };
  if (path.includes('\\'))
    return { rule: 'path.backslash', message: 'a path may not contain a backslash; separate folders with "/"' };
  if (path.startsWith('/'))
    return {
      rule: 'path.absolute',
      message: 'absolute paths are not allowed; paths are relative to the session directory',
    };
  if (path.startsWith('~')) return { rule: 'path.home', message: 'a path may not begin with "~"' };
  if (path.startsWith('-'))
    return { rule: 'path.dash', message: 'a path may not begin with "-"; write "./-name" or rename the file' };
  if (/^(\$[A-Za-z_{(]|%[A-Za-z_]\w*%)/.test(path))
    return { rule: 'path.variable', message: 'variables are not expanded; name the file itself' };
  if (PROTOCOL_COMMA.test(path))
    return { rule: 'path.scheme', message: 'a path may not begin with the name of a protocol and a comma' };
  if (/%(2e|2f|5c)/i.test(path))
    return { rule: 'path.encoded', message: 'a path may not contain %2e, %2f or %5c; percent signs are not decoded' };
  for (const part of path.split('/')) {
    const problem = componentProblem(part);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function componentProblem(part: string): Problem | undefined {
  if (part === '' || part === '.') return undefined;
  if (part === '..')
    return { rule: 'path.parent', message: '".." is not allowed in a path, not even where it would stay inside' };
  if (utf8Bytes(part) > MAX_COMPONENT_BYTES)
    return { rule: 'path.long', message: `each part of a path may have ${MAX_COMPONENT_BYTES} bytes` };
  const folded = part.normalize('NFKC');
  if (
    folded === '.' ||
    folded === '..' ||
    (/[/\\:]/.test(folded) && !/[/\\:]/.test(part)) ||
    /^\.\.?$/.test(folded.trim())
  ) {
    return { rule: 'path.lookalike', message: 'the path contains look-alikes of ".", "/" or ":"' };
  }
  if (/[. ]$/.test(part)) return { rule: 'path.trailing', message: 'no part of a path may end with a dot or a blank' };
  if (WINDOWS_DEVICE.test(part))
    return { rule: 'path.device', message: 'device names (CON, NUL, COM1 …) are not allowed as file names' };
  return undefined;
}

/** The path without `.` and empty parts, as the session adapter wants it. Only for paths without a problem. */
export function normalPath(path: string): string {
  return path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');
}

/** Name under which two paths are the same file on a disk that ignores case, composition and joiners. */
export function foldedPath(path: string): string {
  return normalPath(path)
    .replace(/[\u200c\u200d]/g, '')
    .normalize('NFC')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFC');
}

/** Folder of a normalised path, `''` at the top. */
export function parentOf(path: string): string {
  const slash = path.lastIndexOf('/');
  return slash < 0 ? '' : path.slice(0, slash);
}

/** Last part of a normalised path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Extension in lower case without the dot; `''` when there is none. */
export function extensionOf(path: string): string {
  const name = nameOf(path);
  const dot = name.lastIndexOf('.');
  return dot < 0 ? '' : name.slice(dot + 1).toLowerCase();
}
