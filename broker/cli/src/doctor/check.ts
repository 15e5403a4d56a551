/** What a check of the doctor answers: its code never changes, its words may. */

/** The outcome of one check. */
export interface CheckResult {
  /** Stable, e.g. `ffmpeg`. */
  readonly code: string;
  readonly state: 'pass' | 'warn' | 'fail' | 'skip';
  readonly message: string;
  /** What to do; null when nothing is to be done. */
  readonly fix: string | null;
}

/** It is fine. */
export function pass(code: string, message: string): CheckResult {
  return { code, state: 'pass', message, fix: null };
}

/** It works, but. */
export function warn(code: string, message: string, fix: string): CheckResult {
  return { code, state: 'warn', message, fix };
}

/** It does not work. */
export function fail(code: string, message: string, fix: string): CheckResult {
  return { code, state: 'fail', message, fix };
}

/** Not asked for here. */
export function skip(code: string, message: string): CheckResult {
  return { code, state: 'skip', message, fix: null };
}
