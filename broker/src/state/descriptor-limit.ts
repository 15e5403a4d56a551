/** How many connections this process can have open without running out of file descriptors for its own files. */
import { readFileSync } from 'node:fs';

/** Descriptors kept for the journal, locks, logs and the event loop. */
const OWN_DESCRIPTORS = 48;

/** The configured number, or less when the system allows less. */
export function connectionLimit(configured: number): number {
  try {
    const line = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    if (line === null) return configured;
    return Math.min(configured, Math.max(8, Number(line[1]) - OWN_DESCRIPTORS));
  } catch {
    return configured;
  }
}
