/**
 * When to dial again, and what a close code means. A table and two formulas; randomness comes in as a number in [0, 1).
 *
 * Order: a connection ends → {@link verdictOf} says what that means for the jobs and how long to wait → {@link backoffMs} draws the wait where no code
 * prescribes one. The jitter is drawn after the cap, so that it does not vanish there.
 */
import { CLOSE_CODES, HELLO_SKEW_SEC } from '@reelhost/bridge-protocol';
import type { Trouble } from './state.js';

/** The numbers of the back-off. */
export const REDIAL = {
  firstMs: 1_000,
  capMs: 60_000,
  /** While a lease still runs: at least four dials fit into it. */
  heldCapMs: 5_000,
  /** 1001 and 4408: at once, but not all in the same instant. */
  promptMs: 5_000,
  /** 4409: somebody else uses this identity. */
  supersededMs: [60_000, 90_000],
  /** 4429: doubled with each one in a row, up to the cap. */
  rateLimitedMs: [60_000, 120_000],
  rateLimitedCapMs: 600_000,
  /** 4400, 4401, 4403: only a person or an update can change that. */
  refusedMs: [300_000, 600_000],
  /** Supersessions within the window that stop the dialling. */
  conflictCount: 3,
  conflictWindowMs: 600_000,
  /** A clock this far off explains a refused signature. */
  skewMs: HELLO_SKEW_SEC * 1_000,
} as const;

/** Full jitter over an exponential ceiling: the draw comes after the cap, and the cap is small while a lease is held. */
export function backoffMs(attempt: number, random: number, holdsLease: boolean): number {
  const cap = holdsLease ? REDIAL.heldCapMs : REDIAL.capMs;
  return Math.round(random * Math.min(cap, REDIAL.firstMs * 2 ** Math.min(attempt, 20)));
}

function between(range: readonly [number, number], random: number): number {
  return Math.round(range[0] + random * (range[1] - range[0]));
}

/** What a closed connection means. */
export type Verdict = {
  /** Wait in ms; null: the ordinary back-off. */
  readonly waitMs: number | null;
  readonly trouble: Pick<Trouble, 'code' | 'message'>;
  /** The jobs are somebody else's now, or nobody's: stop them at once. */
  readonly dropJobs: boolean;
};

/** Reads a close code (Transport and envelope, close codes). `attempt` counts failures in a row, `skewMs` is local minus gateway clock. */
export function verdictOf(code: number, facts: { attempt: number; random: number; skewMs: number | null }): Verdict {
  const { attempt, random, skewMs } = facts;
  switch (code) {
    case CLOSE_CODES.goingAway:
    case CLOSE_CODES.heartbeatTimeout:
      return {
        waitMs: Math.round(random * REDIAL.promptMs),
        trouble: {
          code: 'unreachable',
          message: code === 1001 ? 'the gateway restarts' : 'the gateway missed our heartbeats',
        },
        dropJobs: false,
      };
    case CLOSE_CODES.superseded:
      return {
        waitMs: between(REDIAL.supersededMs, random),
        trouble: { code: 'superseded', message: 'another connection with the same identity took over' },
        dropJobs: true,
      };
    case CLOSE_CODES.rateLimited: {
      const [low, high] = REDIAL.rateLimitedMs;
      const cap = Math.min(REDIAL.rateLimitedCapMs, high * 2 ** Math.min(attempt, 10));
      return {
        waitMs: between([low, Math.max(high, cap)], random),
        trouble: { code: 'rate_limited', message: 'the gateway asks for fewer connections' },
        dropJobs: false,
      };
    }
    case CLOSE_CODES.badHello:
      return {
        waitMs: between(REDIAL.refusedMs, random),
        trouble: {
          code: 'incompatible',
          message: 'the gateway does not speak this version of the protocol; update reelhost',
        },
        dropJobs: false,
      };
    case CLOSE_CODES.unauthenticated:
      return skewMs !== null && Math.abs(skewMs) > REDIAL.skewMs
        ? {
            waitMs: null,
            trouble: {
              code: 'clock_skew',
              message: `this computer's clock is ${Math.round(Math.abs(skewMs) / 1000)} s ${skewMs < 0 ? 'behind' : 'ahead of'} the gateway's: check time sync; the pairing is untouched`,
            },
            dropJobs: false,
          }
        : {
            waitMs: between(REDIAL.refusedMs, random),
            trouble: {
              code: 'revoked',
              message: 'the gateway does not accept this identity: pair the device again (reelhost device init)',
            },
            dropJobs: true,
          };
    case CLOSE_CODES.forbidden:
      return {
        waitMs: between(REDIAL.refusedMs, random),
        trouble: { code: 'forbidden', message: 'the organisation is disabled at the gateway' },
        dropJobs: false,
      };
    default:
      return {
        waitMs: null,
        trouble: { code: 'unreachable', message: `the connection was closed (${code})` },
        dropJobs: false,
      };
  }
}
