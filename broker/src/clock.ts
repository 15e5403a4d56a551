/** The two clocks of the broker. */
import { performance } from 'node:perf_hooks';
import type { Moment } from './core/index.js';

export interface Clock {
  now(): Moment;
}

export const SYSTEM_CLOCK: Clock = {
  now: () => ({ wall: Date.now(), mono: performance.now() }),
};
