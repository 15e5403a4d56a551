/**
 * Milliseconds on one line that never jumps back, also runs while the computer sleeps, and is the same for every process of one boot.
 *
 * `performance.now` stops during a suspend on Linux and macOS, `os.uptime` does not but is coarse and dear (Linux: a file is read). So the fine clock leads, and is
 * pushed forward whenever the coarse one has run away from it. The coarse one is asked once a second, and whenever the wall clock has left the fine one: a resume
 * moves the wall clock and the uptime together, before any process runs again.
 */
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';

/** A gap between the clocks below this is rounding. */
const SUSPEND_MS = 1_500;
/** Wall and fine clock drift apart by less than this in a second; more is a suspend, or somebody has set the wall clock. */
const JUMP_MS = 100;
/** The coarse clock is asked at least this often, should a suspend and a set wall clock ever hide each other. */
const ASK_MS = 1_000;

/** The clock, and the name of the boot its times belong to. */
export type SuspendClock = { readonly now: () => number; readonly bootId: string };

/** Sources of time; the defaults are the operating system's. */
export type TimeSources = {
  readonly fineMs: () => number;
  readonly coarseMs: () => number;
  readonly wallMs: () => number;
};

const SYSTEM: TimeSources = {
  fineMs: () => performance.now(),
  coarseMs: () => uptime() * 1_000,
  wallMs: () => Date.now(),
};

/** Makes the clock. Times before a reboot belong to another `bootId` and mean nothing afterwards. */
export function suspendClock(sources: TimeSources = SYSTEM): SuspendClock {
  let offset = sources.coarseMs() - sources.fineMs();
  let askedAt = sources.fineMs();
  let wallLead = sources.wallMs() - askedAt;
  let last = 0;
  return {
    bootId: bootIdOf(sources),
    now: () => {
      const fine = sources.fineMs();
      const lead = sources.wallMs() - fine;
      if (fine - askedAt >= ASK_MS || Math.abs(lead - wallLead) > JUMP_MS) {
        const ahead = sources.coarseMs() - (fine + offset);
        if (ahead > SUSPEND_MS) offset += ahead;
        askedAt = fine;
        wallLead = lead;
      }
      last = Math.max(last, fine + offset);
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
