/**
 * Runs in every test file: when its tests are over, no child process, socket, server or temporary folder of ours may be left.
 * A test that needs longer to let go must wait for it itself; this file only looks.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll } from 'vitest';

const SETTLE_MS = 3000;

/** Direct and indirect children of this process, read from /proc; empty where there is no /proc. */
function descendants(): { pid: number; command: string }[] {
  const parents = new Map<number, { parent: number; command: string }>();
  let entries: string[];
  try {
    entries = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
  for (const name of entries) {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (fields[0] === 'Z') continue;
      const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      parents.set(Number(name), { parent: Number(fields[1]), command });
    } catch {
      // It ended between the two reads.
    }
  }
  const found: { pid: number; command: string }[] = [];
  for (const [pid, own] of parents) {
    let at: number | undefined = own.parent;
    while (at !== undefined && at > 1 && at !== process.pid) at = parents.get(at)?.parent;
    if (at === process.pid) found.push({ pid, command: own.command });
  }
  return found;
}

function openHandles(): string[] {
  return process
    .getActiveResourcesInfo()
    .filter((name) => ['TCPSocketWrap', 'TCPServerWrap', 'PipeServerWrap', 'ProcessWrap'].includes(name));
}

const handlesBefore = openHandles().length;
const childrenBefore = new Set(descendants().map((child) => child.pid));

function leftovers(): string[] {
  const children = descendants()
    .filter((child) => !childrenBefore.has(child.pid))
    .map((child) => `process ${child.pid}: ${child.command}`);
  const handles = openHandles();
  return handles.length > handlesBefore ? [...children, `handles: ${handles.join(', ')}`] : children;
}

afterAll(async () => {
  const until = Date.now() + SETTLE_MS;
  let left = leftovers();
  while (left.length > 0 && Date.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 25));
    left = leftovers();
  }
  if (left.length > 0) throw new Error(`left behind by this test file:\n  ${left.join('\n  ')}`);
});
