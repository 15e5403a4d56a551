import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  beginPart,
  DEFAULT_RESTART_POLICY,
  type PartInput,
  type PartState,
  type PartStep,
  policyForExecutors,
  type RestartPolicy,
  stepPart,
} from './supervision.js';

const policy: RestartPolicy = { ...DEFAULT_RESTART_POLICY, maxDeaths: 3, windowMs: 60_000 };
const died: PartInput = { type: 'exited', code: 1, signal: null };
const killed: PartInput = { type: 'exited', code: null, signal: 'SIGKILL' };
const started: PartInput = { type: 'started', pid: 7 };
const elapsed: PartInput = { type: 'timeElapsed' };
const stop: PartInput = { type: 'stopRequested' };

/** Feeds inputs at given times, starting at 0. */
function play(inputs: readonly [number, PartInput][], by: RestartPolicy = policy): PartStep {
  let step = beginPart(0, by);
  for (const [now, input] of inputs) step = stepPart(step.state, input, now, by);
  return step;
}
const names = (step: PartStep): string[] => step.effects.map((effect) => effect.type);

describe('a part of up', () => {
  it('is spawned first of all', () => {
    expect(beginPart(0, policy)).toMatchObject({ state: { phase: 'starting' }, effects: [{ type: 'spawn' }] });
  });

  it('that dies has its group ended and is started again after the first pause', () => {
    const dead = play([
      [10, started],
      [1_000, killed],
    ]);
    expect(dead.state).toMatchObject({ phase: 'waiting', until: 1_500, lastExit: { signal: 'SIGKILL', at: 1_000 } });
    expect(dead.effects).toEqual([
      { type: 'reapGroup', pid: 7 },
      { type: 'wakeAt', at: 1_500 },
    ]);
    const again = stepPart(dead.state, elapsed, 1_500, policy);
    expect(again).toMatchObject({ state: { phase: 'starting', restarts: 1 }, effects: [{ type: 'spawn' }] });
  });

  it('is not started before its pause is over', () => {
    const early = play([
      [10, started],
      [1_000, died],
      [1_499, elapsed],
    ]);
    expect(early).toMatchObject({ state: { phase: 'waiting' }, effects: [{ type: 'wakeAt', at: 1_500 }] });
  });

  it('waits twice as long after each death, up to the most', () => {
    const generous: RestartPolicy = { ...policy, maxDeaths: 100, maxPauseMs: 3_000 };
    let step = beginPart(0, generous);
    let now = 0;
    const pauses: number[] = [];
    for (let n = 0; n < 5; n += 1) {
      step = stepPart(step.state, started, now, generous);
      step = stepPart(step.state, died, now, generous);
      if (step.state.phase !== 'waiting') throw new Error('not waiting');
      pauses.push(step.state.until - now);
      now = step.state.until;
      step = stepPart(step.state, elapsed, now, generous);
    }
    expect(pauses).toEqual([500, 1_000, 2_000, 3_000, 3_000]);
  });

  it('that ran steadily begins with the first pause again', () => {
    const step = play([
      [0, started],
      [0, died],
      [500, elapsed],
      [500, started],
      [500 + policy.steadyAfterMs, died],
    ]);
    expect(step.state).toMatchObject({ phase: 'waiting', until: 1_000 + policy.steadyAfterMs });
  });

  it('that dies too often within the window is given up', () => {
    let step = beginPart(0, policy);
    for (let n = 0; n < 4; n += 1) {
      step = stepPart(step.state, started, n * 10_000, policy);
      step = stepPart(step.state, died, n * 10_000, policy);
      if (n < 3) step = stepPart(step.state, elapsed, n * 10_000 + 9_000, policy);
    }
    expect(step.state).toMatchObject({ phase: 'failed', reason: 'died 4 times within 1 minutes' });
    expect(names(step)).toEqual(['reapGroup', 'settled']);
  });

  it.each([2, 5, 77, 78])('that ends with exit code %i is given up at once', (code) => {
    const step = play([
      [0, started],
      [5, { type: 'exited', code, signal: null }],
    ]);
    expect(step.state.phase).toBe('failed');
  });

  it('that is an executor without what it needs is tried again every half minute, and that counts as no death', () => {
    const executor = policyForExecutors(policy);
    let step = beginPart(0, executor);
    for (let n = 0; n < 10; n += 1) {
      const now = n * 30_000;
      step = stepPart(step.state, started, now, executor);
      step = stepPart(step.state, { type: 'exited', code: 78, signal: null }, now, executor);
      expect(step.state).toMatchObject({ phase: 'waiting', until: now + 30_000, deaths: [] });
      step = stepPart(step.state, elapsed, now + 30_000, executor);
    }
  });

  it('that cannot be spawned is given up', () => {
    const step = play([[0, { type: 'spawnFailed', message: 'ENOENT' }]]);
    expect(step.state).toMatchObject({ phase: 'failed', reason: 'cannot be started: ENOENT' });
  });

  it.each([
    ['starting', [] as [number, PartInput][], 'stopping', []],
    ['running', [[0, started]] as [number, PartInput][], 'stopping', ['terminate']],
    [
      'waiting',
      [
        [0, started],
        [1, died],
      ] as [number, PartInput][],
      'stopped',
      ['settled'],
    ],
    ['failed', [[0, { type: 'spawnFailed', message: 'x' }]] as [number, PartInput][], 'stopped', ['settled']],
  ])('is asked to stop while %s', (_phase, before, after, effects) => {
    const step = play([...before, [10, stop]]);
    expect([step.state.phase, names(step)]).toEqual([after, effects]);
  });

  it('that is stopped in the middle of its start is ended as soon as its process is known', () => {
    const step = play([
      [0, stop],
      [1, started],
    ]);
    expect(step).toMatchObject({ state: { phase: 'stopping', pid: 7 }, effects: [{ type: 'terminate', pid: 7 }] });
    expect(stepPart(step.state, killed, 2, policy)).toMatchObject({ state: { phase: 'stopped' } });
  });

  it('is never spawned twice, and never after a stop, whatever happens', () => {
    const inputs = fc.constantFrom(started, died, killed, elapsed, stop, {
      type: 'spawnFailed',
      message: 'x',
    } as PartInput);
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(5_000), inputs), { maxLength: 60 }), (events) => {
        let state: PartState = beginPart(0, policy).state;
        let alive = 1; // spawned and not known to be gone
        let stopped = false;
        let now = 0;
        for (const [later, input] of events) {
          now += later;
          const before = state;
          const step = stepPart(state, input, now, policy);
          state = step.state;
          stopped ||= input.type === 'stopRequested';
          if (before.phase !== state.phase && (state.phase === 'waiting' || state.phase === 'failed')) alive -= 1;
          for (const effect of step.effects) {
            if (effect.type !== 'spawn') continue;
            alive += 1;
            expect(stopped).toBe(false);
            expect(alive).toBe(1);
          }
        }
      }),
    );
  });
});
