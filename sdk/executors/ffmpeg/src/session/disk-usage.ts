/**
 * Measures a session directory and watches it while a program writes to it.
 *
 * Two limits: the sum of all files (the session's disk quota, `disk_full`) and the size of any single file (the job's output cap, `output_too_large`).
 * Sizes are file lengths, which is also what RLIMIT_FSIZE counts; a hole counts as if it were filled. Symlinks are not followed.
 */
import { lstat, opendir, statfs } from 'node:fs/promises';
import { join } from 'node:path';

/** What lies in a directory tree. */
export interface DiskUsage {
  bytes: number;
  files: number;
  /** The largest single file, relative to the measured directory. */
  largest: { path: string; bytes: number };
}

/** Which limit was crossed. */
export type QuotaBreach =
  | { code: 'disk_full'; bytes: number }
  | { code: 'output_too_large'; path: string; bytes: number };

/** Limits in bytes. `known` are the files that already existed, by relative path: only what grows can break the single-file limit. */
export interface QuotaLimits {
  totalBytes: number;
  fileBytes: number;
  known: ReadonlyMap<string, number>;
}

/** How often the directory is looked at while a program runs; a crossing is stopped within two seconds. */
export const WATCH_MS = 500;

/** Walks the tree. Files that vanish meanwhile are left out. */
export async function measure(root: string, onFile?: (path: string, bytes: number) => void): Promise<DiskUsage> {
  const usage: DiskUsage = { bytes: 0, files: 0, largest: { path: '', bytes: 0 } };
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    let entries: Awaited<ReturnType<typeof opendir>>;
    try {
      entries = await opendir(join(root, folder));
    } catch {
      continue;
    }
    for await (const entry of entries) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        folders.push(path);
        continue;
      }
      const seen = await lstat(join(root, path)).catch(() => undefined);
      if (seen === undefined) continue;
      usage.bytes += seen.size;
      usage.files += 1;
      if (seen.size > usage.largest.bytes) usage.largest = { path, bytes: seen.size };
      onFile?.(path, seen.size);
    }
  }
  return usage;
}

/** What is always left free on the file system of the sessions: the computer belongs to somebody. */
export const HOST_RESERVE_BYTES = 256 * 1024 * 1024;

/** The largest sum of files a session may reach: its quota, or what the file system has room for when that is less. */
export async function reachableBytes(root: string, quotaBytes: number, usedBytes: number): Promise<number> {
  const { bavail, bsize } = await statfs(root);
  return Math.min(quotaBytes, usedBytes + Math.max(0, bavail * bsize - HOST_RESERVE_BYTES));
}

/** Looks once whether a limit is crossed. */
export async function findBreach(root: string, limits: QuotaLimits): Promise<QuotaBreach | undefined> {
  let tooLarge: QuotaBreach | undefined;
  const usage = await measure(root, (path, bytes) => {
    if (bytes > limits.fileBytes && bytes > (limits.known.get(path) ?? 0))
      tooLarge ??= { code: 'output_too_large', path, bytes };
  });
  if (usage.bytes > limits.totalBytes) return { code: 'disk_full', bytes: usage.bytes };
  return tooLarge;
}

/** Watches until `stop` is called; `onBreach` is called at most once. */
export function watchQuota(
  root: string,
  limits: QuotaLimits,
  onBreach: (breach: QuotaBreach) => void,
): { stop(): void } {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  const look = async (): Promise<void> => {
    const startedAt = performance.now();
    const breach = await findBreach(root, limits).catch(() => undefined);
    if (stopped) return;
    if (breach) {
      stopped = true;
      onBreach(breach);
      return;
    }
    // A tree of very many files is looked at less often, so that looking never takes more than a fifth of the time.
    timer = setTimeout(() => void look(), Math.max(WATCH_MS, (performance.now() - startedAt) * 4));
  };
  timer = setTimeout(() => void look(), WATCH_MS);
  return {
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
