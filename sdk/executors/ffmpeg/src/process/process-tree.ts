/**
 * Ends a whole process tree: the group of the leader, and on Linux everything that carries its marker.
 *
 * Order of events: SIGTERM to all → wait for the leader, at most `graceMs` → SIGKILL to all, repeated every SWEEP_MS until two passes in a row find
 * nothing (a process may fork while it is being swept) or GIVE_UP_MS have passed (a process in an uninterruptible wait cannot be helped).
 */
import { kill, markedProcesses } from './marker.js';

/** Time between SIGTERM and SIGKILL; leaves three seconds to clean up within the ten seconds of the remote protocol's graceSec. */
export const KILL_AFTER_MS = 7_000;
const SWEEP_MS = 40;
const GIVE_UP_MS = 4_000;

/** One tree. The leader's pid is also its group's id; without one only the marker counts. */
export interface ProcessTree {
  leader?: number;
  marker: string;
}

/** Sends one signal to every process of the tree. @returns whether any was there. */
export function signalTree(tree: ProcessTree, signal: NodeJS.Signals): boolean {
  let any = tree.leader !== undefined && kill(-tree.leader, signal);
  if (tree.marker === '') return any;
  for (const { pid } of markedProcesses(tree.marker)) any = kill(pid, signal) || any;
  return any;
}

/** Kills what is left of the tree. @returns false when something survived for GIVE_UP_MS. */
export async function sweepTree(tree: ProcessTree): Promise<boolean> {
  const until = performance.now() + GIVE_UP_MS;
  let empty = 0;
  while (empty < 2) {
    empty = signalTree(tree, 'SIGKILL') ? 0 : empty + 1;
    if (empty === 2) break;
    if (performance.now() > until) return false;
    await new Promise((resolve) => setTimeout(resolve, empty === 0 ? SWEEP_MS : 2));
  }
  return true;
}
