/**
 * The life of one connection to a broker, as a pure state machine: dial, say hello, prepare (register tasks, renew watches), serve,
 * and after a cut wait and dial again. It decides when; the driver does it.
 *
 * It never gives up by itself: only a refusal that a retry cannot mend ends it, or `stop`.
 * Order of events: start → dial → opened → greet → greeted → prepare → prepared (up) → lost (down) → rest → dial …
 */

/** Where a link stands. */
export type LinkPhase = 'idle' | 'dialing' | 'greeting' | 'preparing' | 'up' | 'resting' | 'ended';

/** What the machine remembers. */
export interface LinkState {
  readonly phase: LinkPhase;
  /** Dials since the link was last up. */
  readonly attempts: number;
}

/** What has happened. `lost` covers a failed dial, a cut, and a peer that breaks the protocol. */
export type LinkInput =
  | { readonly type: 'started' }
  | { readonly type: 'opened' }
  | { readonly type: 'greeted' }
  | { readonly type: 'prepared' }
  | { readonly type: 'refused'; readonly retryable: boolean; readonly reason: unknown }
  | { readonly type: 'lost'; readonly reason: unknown }
  | { readonly type: 'rang' }
  | { readonly type: 'stopped' };

/** What the driver must do, in order. `wakeIn` replaces an earlier one; `wakeOff` cancels it. */
export type LinkEffect =
  | { readonly type: 'dial' }
  | { readonly type: 'greet' }
  | { readonly type: 'prepare' }
  | { readonly type: 'reportUp' }
  | { readonly type: 'reportDown'; readonly reason: unknown }
  | { readonly type: 'hangUp' }
  | { readonly type: 'wakeIn'; readonly ms: number }
  | { readonly type: 'wakeOff' }
  | { readonly type: 'reportEnd'; readonly reason: unknown };

/** Pauses between dials, and how long a dial with its handshake may take. */
export interface LinkTiming {
  readonly firstRestMs: number;
  readonly longestRestMs: number;
  readonly handshakeMs: number;
}

/** The timing both SDK sides use: from 50 ms to 2 s, with jitter; 30 s for a handshake. */
export const LINK_TIMING: LinkTiming = { firstRestMs: 50, longestRestMs: 2_000, handshakeMs: 30_000 };

/** A link that has not begun. */
export const IDLE_LINK: LinkState = { phase: 'idle', attempts: 0 };

/** The pause before dial number `attempts` + 1, in milliseconds. `random` is in [0, 1). */
export function restMs(attempts: number, random: number, timing: LinkTiming): number {
  const full = Math.min(timing.longestRestMs, timing.firstRestMs * 2 ** Math.min(attempts, 16));
  return Math.round(full * (0.5 + random / 2));
}

const STALL = new Error('the broker did not finish the handshake in time');

function ended(reason: unknown, live: boolean): [LinkState, LinkEffect[]] {
  const end: LinkEffect[] = [{ type: 'wakeOff' }, { type: 'reportEnd', reason }];
  return [{ phase: 'ended', attempts: 0 }, live ? [{ type: 'hangUp' }, ...end] : end];
}

function rest(state: LinkState, reason: unknown, random: number, timing: LinkTiming): [LinkState, LinkEffect[]] {
  const effects: LinkEffect[] = [{ type: 'hangUp' }, { type: 'reportDown', reason }];
  effects.push({ type: 'wakeIn', ms: restMs(state.attempts, random, timing) });
  return [{ phase: 'resting', attempts: state.attempts + 1 }, effects];
}

/** One step of the machine. Inputs that mean nothing in the present phase change nothing. */
export function stepLink(
  state: LinkState,
  input: LinkInput,
  random: number,
  timing: LinkTiming = LINK_TIMING,
): [LinkState, LinkEffect[]] {
  const live =
    state.phase === 'dialing' || state.phase === 'greeting' || state.phase === 'preparing' || state.phase === 'up';
  if (state.phase === 'ended') return [state, []];
  switch (input.type) {
    case 'started':
      if (state.phase !== 'idle') return [state, []];
      return [{ phase: 'dialing', attempts: 0 }, [{ type: 'dial' }, { type: 'wakeIn', ms: timing.handshakeMs }]];
    case 'opened':
      if (state.phase !== 'dialing') return [state, []];
      return [{ ...state, phase: 'greeting' }, [{ type: 'greet' }]];
    case 'greeted':
      if (state.phase !== 'greeting') return [state, []];
      return [{ ...state, phase: 'preparing' }, [{ type: 'prepare' }]];
    case 'prepared':
      if (state.phase !== 'preparing') return [state, []];
      return [{ phase: 'up', attempts: 0 }, [{ type: 'wakeOff' }, { type: 'reportUp' }]];
    case 'refused':
      if (!live) return [state, []];
      return input.retryable ? rest(state, input.reason, random, timing) : ended(input.reason, true);
    case 'lost':
      return live ? rest(state, input.reason, random, timing) : [state, []];
    case 'rang':
      if (state.phase === 'resting') {
        return [{ ...state, phase: 'dialing' }, [{ type: 'dial' }, { type: 'wakeIn', ms: timing.handshakeMs }]];
      }
      return live && state.phase !== 'up' ? rest(state, STALL, random, timing) : [state, []];
    case 'stopped':
      return ended(undefined, live);
  }
}
