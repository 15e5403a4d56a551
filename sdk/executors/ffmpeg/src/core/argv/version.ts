/**
 * Which columns of the tables speak for the ffmpeg that will run. A release between two known ones must satisfy both neighbours; a
 * build whose number says nothing (a git snapshot) must satisfy all of them, or, when it tells that it is of 2023 or later, all from 5.1 on.
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
  if (release === undefined) return isRecentSnapshot(version) ? all.slice(FILTER_VERSIONS.indexOf('5.1')) : all;
  const rank = ([major, minor]: readonly [number, number]): number => major * 1000 + minor;
  const ranks = FILTER_VERSIONS.map((label) => rank(releaseOf(label) ?? [0, 0]));
  const own = rank(release);
  const exact = ranks.indexOf(own);
  if (exact >= 0) return [exact];
  const above = ranks.findIndex((known) => known > own);
  if (above < 0) return [ranks.length - 1];
  return above === 0 ? [0] : [above - 1, above];
}

/** Snapshots name their revision (`N-121234-g…`; revision 110000 is of March 2023, after 6.0) or their day (`2024-09-01-git-…`). */
function isRecentSnapshot(version: string): boolean {
  const revision = /^N-(\d+)-g/.exec(version)?.[1];
  const year = /^(\d{4})-\d\d-\d\d-git/.exec(version)?.[1];
  return Number(revision ?? 0) >= 110_000 || Number(year ?? 0) >= 2023;
}
