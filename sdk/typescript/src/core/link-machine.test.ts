/** The link's transition table, cell by cell. */
import { describe, expect, it } from 'vitest';
import { LINK_TIMING, type LinkInput, type LinkPhase, type LinkState, restMs, stepLink } from './link-machine.js';

const REASON = new Error('cut');
const INPUTS: Readonly<Record<string, LinkInput>> = {
  started: { type: 'started' },
  opened: { type: 'opened' },
  greeted: { type: 'greeted' },
  prepared: { type: 'prepared' },
  'refused for now': { type: 'refused', retryable: true, reason: REASON },
  'refused for good': { type: 'refused', retryable: false, reason: REASON },
  lost: { type: 'lost', reason: REASON },
  rang: { type: 'rang' },
  stopped: { type: 'stopped' },
};

/** phase → input → next phase and effects; what is not listed changes nothing. */
const REST = 'resting: hangUp reportDown wakeIn';
const END = 'ended: hangUp wakeOff reportEnd';
const LIVE = { 'refused for now': REST, 'refused for good': END, lost: REST, rang: REST, stopped: END };
const TABLE: Readonly<Record<LinkPhase, Readonly<Record<string, string>>>> = {
  idle: { started: 'dialing: dial wakeIn', stopped: 'ended: wakeOff reportEnd' },
  dialing: { ...LIVE, opened: 'greeting: greet' },
  greeting: { ...LIVE, greeted: 'preparing: prepare' },
  preparing: { ...LIVE, prepared: 'up: wakeOff reportUp' },
  up: { ...LIVE, rang: 'up:' },
  resting: { rang: 'dialing: dial wakeIn', stopped: 'ended: wakeOff reportEnd' },
  ended: {},
};

describe('the link machine', () => {
  for (const [phase, row] of Object.entries(TABLE) as [LinkPhase, Readonly<Record<string, string>>][]) {
    for (const [name, input] of Object.entries(INPUTS)) {
      it(`${phase}, ${name}`, () => {
        const state: LinkState = { phase, attempts: 3 };
        const [next, effects] = stepLink(state, input, 0.5);
        expect(`${next.phase}: ${effects.map((effect) => effect.type).join(' ')}`.trim()).toBe(
          row[name] ?? `${phase}:`,
        );
      });
    }
  }

  it('counts dials until it is up, and then begins again with short rests', () => {
    let state: LinkState = { phase: 'dialing', attempts: 0 };
    const rests: number[] = [];
    for (let dial = 0; dial < 9; dial += 1) {
      const [rested, effects] = stepLink(state, { type: 'lost', reason: REASON }, 1);
      for (const effect of effects) if (effect.type === 'wakeIn') rests.push(effect.ms);
      state = stepLink(rested, { type: 'rang' }, 0)[0];
    }
    expect(rests).toEqual([50, 100, 200, 400, 800, 1600, 2000, 2000, 2000]);
    for (const type of ['opened', 'greeted', 'prepared'] as const) state = stepLink(state, { type }, 0)[0];
    expect(state).toEqual({ phase: 'up', attempts: 0 });
  });

  it('rests between half and all of the pause', () => {
    for (const attempts of [0, 3, 50, 1_000_000]) {
      const full = Math.min(2_000, 50 * 2 ** Math.min(attempts, 16));
      expect(restMs(attempts, 0, LINK_TIMING)).toBe(full / 2);
      expect(restMs(attempts, 0.999999, LINK_TIMING)).toBeLessThanOrEqual(full);
    }
  });
});
