/**
 * Finds the processes that belong to one run, wherever they hide: every child carries a marker in its environment, which its own children inherit
 * even when they change session or lose their parent. Linux only (/proc); elsewhere the process group is all there is.
 *
 * A marker names its owner, so that a later executor can tell the leftovers of a dead one from the children of a living one:
 * `<owner pid>:<owner start time>:<random>:<run number>`.
 */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

/** The environment variable that carries the marker. */
export const MARKER_VARIABLE = 'REELHOST_CHILD';

/** Start time of a process in clock ticks since boot, `undefined` when it does not run (a zombie does not). */
export function startTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

/** The part of all markers of this process; a run appends its number. */
export function ownerMarker(pid: number = process.pid): string {
  return `${pid}:${startTime(pid) ?? '0'}:${randomBytes(8).toString('hex')}:`;
}

/** A process that carries a marker. */
export interface MarkedProcess {
  pid: number;
  marker: string;
}

/** All living processes whose marker begins with `prefix` (`''`: any), without the calling process. Cost: about 4 ms per 200 processes. */
export function markedProcesses(prefix: string): MarkedProcess[] {
  const needle = `${MARKER_VARIABLE}=${prefix}`;
  const found: MarkedProcess[] = [];
  let names: string[];
  try {
    names = readdirSync('/proc');
  } catch {
    return found;
  }
  for (const name of names) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid <= 1 || pid === process.pid) continue;
    let environment: string;
    try {
      environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
    } catch {
      continue; // Somebody else's, or already gone.
    }
    const at = environment.startsWith(needle) ? 0 : environment.indexOf(`\0${needle}`);
    if (at === -1 || startTime(pid) === undefined) continue;
    const from = environment.indexOf('=', at) + 1;
    const to = environment.indexOf('\0', from);
    found.push({ pid, marker: environment.slice(from, to === -1 ? undefined : to) });
  }
  return found;
}

/**
 * Ends what executors that no longer live have left behind. Children of a living owner are not touched.
 * @returns how many processes were killed.
 */
export function sweepOrphans(): number {
  let killed = 0;
  for (const { pid, marker } of markedProcesses('')) {
    const [owner, started] = marker.split(':');
    const ownerPid = Number(owner);
    if (!Number.isInteger(ownerPid) || ownerPid <= 1 || startTime(ownerPid) === started) continue;
    if (kill(pid, 'SIGKILL')) killed += 1;
  }
  return killed;
}

/** Sends a signal to a process, or with a negative pid to a group. False when there is none (any more) or it is not ours. */
export function kill(pid: number, signal: NodeJS.Signals | 0): boolean {
  // 0, 1 and -1 mean "my group", init and "everybody"; beyond 32 bits the number would wrap around to one of them.
  if (!Number.isInteger(pid) || Math.abs(pid) <= 1 || Math.abs(pid) > 0x7fffffff) return false;
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}
