/**
 * Milliseconds on one line that never jumps back, also runs while the computer sleeps, and is the same for every process of one boot.
 *
 * `process.hrtime` stops during a suspend on Linux and macOS, `os.uptime` does not but is coarse. So the fine clock leads, and is pushed forward
 * whenever the coarse one has run away from it.
 */
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';

/** A gap between the clocks below this is rounding. */
const SUSPEND_MS = 1_500;

/** The clock, and the name of the boot its times belong to. */
export type SuspendClock = { readonly now: () => number; readonly bootId: string };

/** Sources of time; the defaults are the operating system's. */
export type TimeSources = {
  readonly fineMs: () => number;
  readonly coarseMs: () => number;
  readonly wallMs: () => number;
};

const SYSTEM: TimeSources = {
  fineMs: () => Number(process.hrtime.bigint() / 1_000n) / 1_000,
  coarseMs: () => uptime() * 1_000,
  wallMs: () => Date.now(),
};

/** Makes the clock. Times before a reboot belong to another `bootId` and mean nothing afterwards. */
export function suspendClock(sources: TimeSources = SYSTEM): SuspendClock {
  let offset = sources.coarseMs() - sources.fineMs();
  let last = 0;
  return {
    bootId: bootIdOf(sources),
    now: () => {
      const fine = sources.fineMs() + offset;
      const ahead = sources.coarseMs() - fine;
      if (ahead > SUSPEND_MS) offset += ahead;
      last = Math.max(last, sources.fineMs() + offset);
      return last;
    },
  };
}

function bootIdOf(sources: TimeSources): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    // No such file outside Linux: the minute of the boot identifies it well enough, because a lease lives for 45 s only.
    return `boot-${Math.round((sources.wallMs() - sources.coarseMs()) / 60_000)}`;
  }
}
