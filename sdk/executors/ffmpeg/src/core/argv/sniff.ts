/**
 * Recognises files that make ffmpeg open other files: playlists, manifests, lists, descriptions of network sessions. ffmpeg chooses a
 * demuxer by content, whatever the name says, and looks for some of these words anywhere in the leading text, so this does too.
 */
import type { Problem } from './verdict.js';

/** How much of a file is looked at: as much as ffmpeg's own probing may read. */
export const SNIFF_BYTES = 1_048_576;

const AT_START: readonly (readonly [RegExp, string])[] = [
  [/^#EXTM3U/i, 'an HLS playlist'],
  [/^ffconcat\s+version/i, 'a concat list'],
  [/^# VobSub index file/i, 'a VobSub index'],
  [/^\[playlist\]/i, 'a playlist'],
  [/^\[InternetShortcut\]/i, 'a shortcut'],
  [/^\[Reference\]/i, 'a reference movie'],
  [/^RTSPtext/i, 'a reference movie'],
  [/^SMILtext/i, 'a SMIL presentation'],
  [
    /^(<\?xml|<!doctype|<!--|<mpd|<smil|<svg|<asx|<smoothstreamingmedia|<compositionplaylist|<assetmap|<rss)/i,
    'an XML document (manifest, playlist or drawing)',
  ],
  [/^v=0\s/, 'a session description (SDP)'],
];

const ANYWHERE: readonly (readonly [RegExp, string])[] = [
  [/<MPD/i, 'a DASH manifest'],
  [/<CompositionPlaylist/i, 'an IMF composition playlist'],
  [/<SmoothStreamingMedia/i, 'a Smooth Streaming manifest'],
  [/^c=IN IP/m, 'a session description (SDP)'],
];

/**
 * What a file is that may not be read as media, or undefined. `bytes` is the beginning of the file, one character per byte; only the
 * text before the first NUL counts, as in ffmpeg.
 */
export function playlistKind(bytes: string): string | undefined {
  const own = withoutTags(bytes);
  const end = own.indexOf('\0');
  const text = (end < 0 ? own : own.slice(0, end)).replace(/^(\u00ef\u00bb\u00bf)?[\s\u00a0]*/, '');
  for (const [pattern, kind] of AT_START) if (pattern.test(text)) return kind;
  for (const [pattern, kind] of ANYWHERE) if (pattern.test(text)) return kind;
  return undefined;
}

/** True when a file begins with an ID3 tag, which ffmpeg skips before it looks at what the file is. */
export function isTagged(bytes: string): boolean {
  return bytes.startsWith('ID3');
}

/** The bytes behind the ID3 tags at the beginning, as far as the tags end within them. */
function withoutTags(bytes: string): string {
  let at = 0;
  while (bytes.startsWith('ID3', at) && at + 10 < bytes.length) {
    const size = [6, 7, 8, 9].reduce((sum, place) => sum * 128 + (bytes.charCodeAt(at + place) & 0x7f), 0);
    const footer = (bytes.charCodeAt(at + 5) & 0x10) === 0 ? 0 : 10;
    at += 10 + size + footer;
  }
  return bytes.slice(at);
}

/** Extensions by which ffmpeg chooses a demuxer that runs a script, or the decoder of drawings that name other files: neither looks at the content first. */
export const SCRIPT_EXTENSIONS: ReadonlySet<string> = new Set(['avs', 'avsi', 'vpy', 'svg', 'svgz']);

/** The problem with a file that turns out to be a playlist. */
export function playlistProblem(path: string, kind: string): Problem {
  return {
    rule: 'content.playlist',
    message: `"${path}" is ${kind}, which names other files; only media files of the session may be read here (concat lists with "-f concat")`,
  };
}
