/**
 * What to do about an earlier `reelhost up` on the same state directory. One that lives wins: we refuse. One that was killed may have left parts that are
 * still stopping; they hold the locks, so they are asked again to stop (which makes them hurry) and then ended. Nothing is lost by that: every part keeps what it
 * must on disk. A process that merely has the same id as one in the file is never touched.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { CommandError, ExitCode } from '../exit-codes.js';
import type { UpLog } from './log.js';
import { processMark } from './process-mark.js';
import { readUpStatus } from './status-file.js';

/** How long parts of a killed predecessor may take, in milliseconds. */
const HURRY_MS = 5_000;
const LOOK_EVERY_MS = 50;

/** @throws CommandError alreadyRunning when the predecessor lives */
export async function endPredecessor(stateDir: string, log: UpLog): Promise<void> {
  const before = readUpStatus(stateDir);
  if (before === null) return;
  if (before.mark !== null && processMark(before.pid) === before.mark) {
    throw new CommandError(ExitCode.alreadyRunning, `reelhost up runs already on ${stateDir} (process ${before.pid})`);
  }
  const left = before.parts.flatMap(({ name, pid, mark }) =>
    pid === null || mark === null ? [] : [{ name, pid, mark }],
  );
  const lives = ({ pid, mark }: { pid: number; mark: string }): boolean => processMark(pid) === mark;
  const parts = left.filter(lives);
  if (parts.length === 0) return;
  log('warn', 'up.ends_predecessor', { parts: parts.map(({ name }) => name) });
  for (const part of parts) signal(part.pid, 'SIGTERM');
  const until = Date.now() + HURRY_MS;
  while (parts.some(lives) && Date.now() < until) await wait(LOOK_EVERY_MS);
  for (const part of parts.filter(lives)) signal(-part.pid, 'SIGKILL');
  while (parts.some(lives) && Date.now() < until + HURRY_MS) await wait(LOOK_EVERY_MS);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It ended by itself in the meantime.
  }
}
