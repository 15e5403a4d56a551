/**
 * Named places at which a broker under test kills itself with SIGKILL, so that "the power went off exactly there" can be tried for every there.
 * Armed by REELHOST_BROKER_CRASH_AT = `<phase>:<step>`; unset, as always outside tests, it costs one comparison per turn.
 *
 * Phases of a turn: `received` (decided, nothing durable), `committed` (durable, nobody has heard of it), `sent` (said). Steps: `enqueue` (a new
 * job), `start` (a job went to an executor), `settle` (a job ended).
 */
import type { Records } from './core/index.js';

/** Where in a turn a test may kill the broker. */
export type CrashPhase = 'received' | 'committed' | 'sent';

/** The one place a test has named, or none. */
export class CrashPoint {
  readonly #phase: string;
  readonly #step: string;
  #hit = false;

  private constructor(phase: string, step: string) {
    this.#phase = phase;
    this.#step = step;
  }

  /** The point the environment names, or null. */
  static fromEnvironment(env: NodeJS.ProcessEnv): CrashPoint | null {
    const [phase, step] = (env['REELHOST_BROKER_CRASH_AT'] ?? '').split(':');
    return phase === undefined || phase === '' || step === undefined ? null : new CrashPoint(phase, step);
  }

  /** Looks at what this turn is about, before its records are forgotten. */
  observe(records: Records): void {
    this.#hit = records.jobs.some((job) => {
      if (this.#step === 'enqueue') return !job.stored;
      if (this.#step === 'start') return job.state === 'executing';
      return job.completedAt !== null;
    });
  }

  /** Dies when this is the place. */
  pass(phase: CrashPhase): void {
    if (this.#hit && this.#phase === phase) process.kill(process.pid, 'SIGKILL');
  }
}
