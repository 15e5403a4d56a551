/**
 * Decides when a part of `reelhost up` is started again and when it is given up. Pure: the time is an argument, starting and killing are effects for
 * the driver (up/supervisor.ts). It must never start a part twice, and never start one after a stop was asked for.
 *
 * Order of events: begin → spawn → started → exited → (pause) → timeElapsed → spawn … ; stopRequested → stopping → exited → stopped.
 */

/** How patient the supervisor is. Durations in milliseconds. */
export interface RestartPolicy {
  /** Pause before the first restart; doubles with every death up to `maxPauseMs`. */
  readonly firstPauseMs: number;
  readonly maxPauseMs: number;
  /** A part that ran this long is healthy again: the pause starts anew. */
  readonly steadyAfterMs: number;
  /** More deaths than this within `windowMs`, and the part is given up. */
  readonly maxDeaths: number;
  readonly windowMs: number;
  /** Exit codes that another start cannot mend: wrong usage, lock held, not paired, wrong configuration. */
  readonly finalCodes: readonly number[];
  /** Exit codes that somebody may mend while we wait (install ffmpeg, say): tried again every `slowPauseMs`, without an end. */
  readonly slowCodes: readonly number[];
  readonly slowPauseMs: number;
}

/** The policy when the configuration says nothing. */
export const DEFAULT_RESTART_POLICY: RestartPolicy = {
  firstPauseMs: 500,
  maxPauseMs: 30_000,
  steadyAfterMs: 60_000,
  maxDeaths: 10,
  windowMs: 300_000,
  finalCodes: [2, 5, 77, 78],
  slowCodes: [],
  slowPauseMs: 30_000,
};

/** An executor that cannot work yet (exit code 78) must not take the host down with it, and may be able to later. */
export function policyForExecutors(policy: RestartPolicy): RestartPolicy {
  return { ...policy, finalCodes: policy.finalCodes.filter((code) => code !== 78), slowCodes: [78] };
}

/** How a process ended; exactly one of the two is not null. */
export interface PartExit {
  readonly code: number | null;
  readonly signal: string | null;
  readonly at: number;
}

interface History {
  /** Times of the deaths within the window, oldest first. */
  readonly deaths: readonly number[];
  readonly pauseMs: number;
  readonly restarts: number;
  readonly lastExit: PartExit | null;
}

/** Where a part stands. `since` is when it came there. */
export type PartState = History & { readonly since: number } & (
    | { readonly phase: 'starting' }
    | { readonly phase: 'running'; readonly pid: number }
    | { readonly phase: 'waiting'; readonly until: number }
    | { readonly phase: 'failed'; readonly reason: string }
    | { readonly phase: 'stopping'; readonly pid: number | null }
    | { readonly phase: 'stopped' }
  );

/** What can happen to a part. */
export type PartInput =
  | { readonly type: 'started'; readonly pid: number }
  | { readonly type: 'exited'; readonly code: number | null; readonly signal: string | null }
  | { readonly type: 'spawnFailed'; readonly message: string }
  | { readonly type: 'timeElapsed' }
  | { readonly type: 'stopRequested' };

/** What the driver has to do. */
export type PartEffect =
  | { readonly type: 'spawn' }
  | { readonly type: 'wakeAt'; readonly at: number }
  /** Ask the process to stop. */
  | { readonly type: 'terminate'; readonly pid: number }
  /** End whatever the dead process left in its process group. */
  | { readonly type: 'reapGroup'; readonly pid: number }
  | { readonly type: 'settled'; readonly outcome: 'failed' | 'stopped' };

/** The new state, and what to do. */
export interface PartStep {
  readonly state: PartState;
  readonly effects: readonly PartEffect[];
}

/** A part that is about to be started for the first time. */
export function beginPart(now: number, policy: RestartPolicy): PartStep {
  const history = { deaths: [], pauseMs: policy.firstPauseMs, restarts: 0, lastExit: null };
  return { state: { ...history, phase: 'starting', since: now }, effects: [{ type: 'spawn' }] };
}

/** One step. Inputs that mean nothing in a state leave it as it is. */
export function stepPart(state: PartState, input: PartInput, now: number, policy: RestartPolicy): PartStep {
  switch (input.type) {
    case 'started':
      if (state.phase === 'stopping') {
        return { state: { ...state, pid: input.pid }, effects: [{ type: 'terminate', pid: input.pid }] };
      }
      if (state.phase !== 'starting') return unchanged(state);
      return { state: { ...historyOf(state), phase: 'running', pid: input.pid, since: now }, effects: [] };
    case 'exited':
      return exited(state, { code: input.code, signal: input.signal, at: now }, now, policy);
    case 'spawnFailed':
      if (state.phase === 'stopping') return stopped(state, now);
      if (state.phase !== 'starting') return unchanged(state);
      return failed(historyOf(state), `cannot be started: ${input.message}`, now, []);
    case 'timeElapsed':
      if (state.phase !== 'waiting') return unchanged(state);
      if (now < state.until) return { state, effects: [{ type: 'wakeAt', at: state.until }] };
      return {
        state: { ...historyOf(state), restarts: state.restarts + 1, phase: 'starting', since: now },
        effects: [{ type: 'spawn' }],
      };
    case 'stopRequested':
      return stopRequested(state, now);
  }
}

function exited(state: PartState, exit: PartExit, now: number, policy: RestartPolicy): PartStep {
  if (state.phase === 'stopping') {
    const reap: PartEffect[] = state.pid === null ? [] : [{ type: 'reapGroup', pid: state.pid }];
    const next = stopped({ ...state, lastExit: exit }, now);
    return { state: next.state, effects: [...reap, ...next.effects] };
  }
  if (state.phase !== 'running') return unchanged(state);
  const reap: PartEffect = { type: 'reapGroup', pid: state.pid };
  const before: History = { ...historyOf(state), lastExit: exit };
  if (exit.code !== null && policy.finalCodes.includes(exit.code)) {
    return failed(before, `ended with exit code ${exit.code}, which another start would not change`, now, [reap]);
  }
  if (exit.code !== null && policy.slowCodes.includes(exit.code)) {
    return waiting(before, now + policy.slowPauseMs, now, reap);
  }
  const deaths = [...state.deaths, now].filter((at) => at > now - policy.windowMs);
  if (deaths.length > policy.maxDeaths) {
    const minutes = Math.round(policy.windowMs / 60_000);
    return failed({ ...before, deaths }, `died ${deaths.length} times within ${minutes} minutes`, now, [reap]);
  }
  const steady = now - state.since >= policy.steadyAfterMs;
  const pauseMs = steady ? policy.firstPauseMs : state.pauseMs;
  const history = { ...before, deaths, pauseMs: Math.min(pauseMs * 2, policy.maxPauseMs) };
  return waiting(history, now + pauseMs, now, reap);
}

function waiting(history: History, until: number, now: number, reap: PartEffect): PartStep {
  return { state: { ...history, phase: 'waiting', until, since: now }, effects: [reap, { type: 'wakeAt', at: until }] };
}

function stopRequested(state: PartState, now: number): PartStep {
  switch (state.phase) {
    case 'starting':
      return { state: { ...historyOf(state), phase: 'stopping', pid: null, since: now }, effects: [] };
    case 'running':
      return {
        state: { ...historyOf(state), phase: 'stopping', pid: state.pid, since: now },
        effects: [{ type: 'terminate', pid: state.pid }],
      };
    case 'waiting':
    case 'failed':
      return stopped(state, now);
    case 'stopping':
    case 'stopped':
      return unchanged(state);
  }
}

function failed(history: History, reason: string, now: number, before: readonly PartEffect[]): PartStep {
  return {
    state: { ...history, phase: 'failed', reason, since: now },
    effects: [...before, { type: 'settled', outcome: 'failed' }],
  };
}

function stopped(state: PartState, now: number): PartStep {
  return {
    state: { ...historyOf(state), phase: 'stopped', since: now },
    effects: [{ type: 'settled', outcome: 'stopped' }],
  };
}

function unchanged(state: PartState): PartStep {
  return { state, effects: [] };
}

function historyOf(state: PartState): History {
  const { deaths, pauseMs, restarts, lastExit } = state;
  return { deaths, pauseMs, restarts, lastExit };
}
