/** `up.status.json`: what `reelhost status` shows of the supervisor. Written on every change, by renaming, readable by the owner only. */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { processMark } from './process-mark.js';
import type { PartView } from './supervisor.js';

/** One part in the file. Times are unix milliseconds. */
export interface UpPartStatus {
  readonly name: string;
  readonly phase: PartView['state']['phase'];
  readonly since: number;
  readonly pid: number | null;
  /** See process-mark.ts; tells the process from a later one with the same id. */
  readonly mark: string | null;
  readonly restarts: number;
  readonly startsAt: number | null;
  readonly reason: string | null;
  readonly lastExit: { readonly code: number | null; readonly signal: string | null; readonly at: number } | null;
}

/** The content of the file. */
export interface UpStatus {
  readonly schema: 'reelhost.up-status/1';
  readonly pid: number;
  readonly mark: string | null;
  readonly config: string;
  readonly startedAt: number;
  readonly parts: readonly UpPartStatus[];
}

/** Where it lies. */
export function upStatusFile(stateDir: string): string {
  return join(stateDir, 'up.status.json');
}

/** Writes the file anew. */
export function writeUpStatus(
  stateDir: string,
  head: Pick<UpStatus, 'config' | 'startedAt'>,
  parts: readonly PartView[],
): void {
  const status: UpStatus = {
    schema: 'reelhost.up-status/1',
    pid: process.pid,
    mark: processMark(process.pid),
    ...head,
    parts: parts.map(describe),
  };
  const file = upStatusFile(stateDir);
  const partial = `${file}.${process.pid}.part`;
  writeFileSync(partial, JSON.stringify(status), { mode: 0o600 });
  renameSync(partial, file);
}

/** Reads it; null when there is none, or none that can be understood. */
export function readUpStatus(stateDir: string): UpStatus | null {
  try {
    const status = JSON.parse(readFileSync(upStatusFile(stateDir), 'utf8')) as UpStatus;
    return status.schema === 'reelhost.up-status/1' ? status : null;
  } catch {
    return null;
  }
}

/** Removes it at the end. */
export function removeUpStatus(stateDir: string): void {
  rmSync(upStatusFile(stateDir), { force: true });
}

function describe({ name, state }: PartView): UpPartStatus {
  const pid = state.phase === 'running' || state.phase === 'stopping' ? state.pid : null;
  return {
    name,
    phase: state.phase,
    since: state.since,
    pid,
    mark: pid === null ? null : processMark(pid),
    restarts: state.restarts,
    startsAt: state.phase === 'waiting' ? state.until : null,
    reason: state.phase === 'failed' ? state.reason : null,
    lastExit: state.lastExit,
  };
}
