/** Reads what ffmpeg says about itself with `-version`. Releases have a number, snapshots only the version of their libavcodec. */

/** `text` is the word after "version"; the numbers are those of the release, or of the release the libavcodec belongs to. */
export interface ProgramVersion {
  text: string;
  major?: number;
  minor?: number;
}

/** libavcodec major → first release with it. */
const AVCODEC_RELEASES: Readonly<Record<number, { major: number; minor: number }>> = {
  56: { major: 2, minor: 4 },
  57: { major: 3, minor: 0 },
  58: { major: 4, minor: 0 },
  59: { major: 5, minor: 0 },
  60: { major: 6, minor: 0 },
  61: { major: 7, minor: 0 },
  62: { major: 8, minor: 0 },
  63: { major: 9, minor: 0 },
};
/** libavcodec 58.134 came with 4.4. */
const AVCODEC_4_4 = 134;

/** Parses the output of `ffmpeg -version`. */
export function parseVersion(banner: string): ProgramVersion {
  const text = /^\S+ version (\S+)/.exec(banner)?.[1] ?? 'unknown';
  const release = /^n?(\d+)\.(\d+)/.exec(text);
  if (release) return { text, major: Number(release[1]), minor: Number(release[2]) };
  const avcodec = /^libavcodec\s+(\d+)\.\s*(\d+)\./m.exec(banner);
  const known = AVCODEC_RELEASES[Number(avcodec?.[1])];
  if (known === undefined) return { text };
  const minor = known.major === 4 && Number(avcodec?.[2]) >= AVCODEC_4_4 ? 4 : known.minor;
  return { text, major: known.major, minor };
}

/** A version that is not known is not old: it may be a snapshot newer than this table. */
export function isOlderThan(version: ProgramVersion, limit: { major: number; minor: number }): boolean {
  if (version.major === undefined) return false;
  return version.major < limit.major || (version.major === limit.major && (version.minor ?? 0) < limit.minor);
}
