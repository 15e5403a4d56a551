/** The two clocks of the broker. */
import { performance } from 'node:perf_hooks';
import type { Moment } from './core/index.js';

/** Where the driver and its helpers read the time; tests hand in one that stands still. */
export interface Clock {
  now(): Moment;
}

/** The clocks of this computer. */
export const SYSTEM_CLOCK: Clock = {
  now: () => ({ wall: Date.now(), mono: performance.now() }),
};
