/**
 * Comparing versions that are dotted numbers: `minAgentVersion`, `fontsetVersion`, `protocolVersion`.
 */

/** The numbers of a version in order: "fonts-2025.10-b" has 2025 and 10. */
function numbersOf(version: string): number[] {
  return (version.match(/\d+/g) ?? []).map(Number);
}

/** Negative when `left` is older, 0 when they are equal, positive when it is newer. Missing numbers count as 0; letters do not count. */
export function compareVersions(left: string, right: string): number {
  const a = numbersOf(left);
  const b = numbersOf(right);
  for (let at = 0; at < Math.max(a.length, b.length); at += 1) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** True when both versions have the same major number, which is all a peer has to support. */
export function sameMajor(left: string, right: string): boolean {
  return numbersOf(left)[0] === numbersOf(right)[0];
}
