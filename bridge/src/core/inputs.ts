/** Everything that can happen to a bridge, in the past tense. Time passing is an input like any other. */
import type { GatewayMessage, Malformed } from '@reelhost/bridge-protocol';
import type { Capabilities } from './capabilities.js';
import type { Progress } from './state.js';

/** How an op ended in the broker. `resultText` is the executor's result, byte for byte. */
export type OpOutcome =
  | { readonly ok: true; readonly resultText: string }
  | { readonly ok: false; readonly code: string; readonly message: string; readonly retryable: boolean };

/** An event of one connection; those of an older generation change nothing. */
type OfLink = { readonly generation: number };
type OfOp = { readonly jobId: string; readonly epoch: number; readonly opId: string };

/** See the head of the file. */
export type Input =
  | { readonly kind: 'timePassed' }
  | (OfLink & { readonly kind: 'linkUpgraded'; readonly skewMs: number | null })
  | (OfLink & { readonly kind: 'linkFailed'; readonly message: string; readonly rateLimitedSec: number | null })
  | (OfLink & { readonly kind: 'linkClosed'; readonly code: number; readonly reason: string })
  | (OfLink & { readonly kind: 'linkPressed'; readonly pressed: boolean })
  | (OfLink & { readonly kind: 'messageReceived'; readonly message: GatewayMessage })
  | (OfLink & { readonly kind: 'unknownReceived'; readonly type: string })
  | (OfLink & { readonly kind: 'malformedReceived'; readonly malformed: Malformed })
  | { readonly kind: 'brokerConnected' }
  | { readonly kind: 'brokerLost' }
  /** It does not answer, or (`isFull`) its disk is full and it can write nothing down. */
  | { readonly kind: 'brokerWedged'; readonly isFull: boolean }
  | { readonly kind: 'registryChanged'; readonly capabilities: Capabilities }
  | { readonly kind: 'brokerProbed'; readonly jobId: string; readonly epoch: number; readonly alive: boolean }
  | {
      readonly kind: 'sessionOpened';
      readonly jobId: string;
      readonly epoch: number;
      readonly localId: string;
      readonly dir: string;
    }
  | {
      readonly kind: 'sessionRefused';
      readonly jobId: string;
      readonly epoch: number;
      readonly localId: string;
      /** `used`: the id belongs to an older session. `lost`: the broker lost it. `full`: no space. `unavailable`: it is asked again. */
      readonly why: 'used' | 'lost' | 'full' | 'unavailable';
      readonly message: string;
    }
  /** `gone`: nothing of it runs any more. */
  | { readonly kind: 'sessionClosed'; readonly localId: string; readonly gone: boolean }
  | (OfOp & { readonly kind: 'opProgressed'; readonly progress: Progress })
  | (OfOp & { readonly kind: 'opSettled'; readonly outcome: OpOutcome; readonly conflict: boolean })
  /** The answer to a question about an op of the past; null: the broker knows no such op. */
  | (OfOp & { readonly kind: 'opRecalled'; readonly op: string; readonly outcome: OpOutcome | null })
  | { readonly kind: 'pauseChanged'; readonly paused: boolean }
  /** SIGTERM or SIGINT; the second one is the fast path. */
  | { readonly kind: 'stopRequested'; readonly reason: string };
