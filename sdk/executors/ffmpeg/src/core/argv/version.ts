/**
 * Which columns of the tables speak for the ffmpeg that will run. A release between two known ones must satisfy both neighbours; a
 * build whose number says nothing (a git snapshot) must satisfy all of them.
 */
import { FILTER_VERSIONS } from './tables/filters.js';

/** Major and minor number of a release, or undefined for a build that does not say (`N-47683-g0e8eb07980-static`). */
export function releaseOf(version: string): readonly [number, number] | undefined {
  const match = /^\s*n?(\d+)\.(\d+)/.exec(version);
  return match === null ? undefined : [Number(match[1]), Number(match[2])];
}

/** Indexes into FILTER_VERSIONS of the versions whose meaning an argv must be safe under. */
export function columnsFor(version: string): readonly number[] {
  const all = FILTER_VERSIONS.map((_, index) => index);
  const release = releaseOf(version);
  if (release === undefined) return all;
  const rank = ([major, minor]: readonly [number, number]): number => major * 1000 + minor;
  const ranks = FILTER_VERSIONS.map((label) => rank(releaseOf(label) ?? [0, 0]));
  const own = rank(release);
  const exact = ranks.indexOf(own);
  if (exact >= 0) return [exact];
  const above = ranks.findIndex((known) => known > own);
  if (above < 0) return [ranks.length - 1];
  return above === 0 ? [0] : [above - 1, above];
}
