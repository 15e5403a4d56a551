/**
 * Tells one process from a later one with the same id. A file that survived its writer names process ids; before a signal is sent to one of them, its mark
 * must be the same as when the file was written.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** When the process started, as the system says it; null when there is no such process (a zombie counts as none). */
export function processMark(pid: number): string | null {
  if (process.platform === 'linux') {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // The name in parentheses may itself contain parentheses and spaces; the fields begin after the last one.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return fields[0] === 'Z' ? null : (fields[19] ?? null);
    } catch {
      return null;
    }
  }
  const { stdout, status } = spawnSync('/bin/ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' });
  return status === 0 && stdout.trim() !== '' ? stdout.trim() : null;
}
