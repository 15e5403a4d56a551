/**
 * What the bridge knows, as data. The core turns (state, input, time) into a new state; nothing in here is ever changed in place.
 *
 * All times are milliseconds of one monotonic clock that also runs while the computer sleeps and that goes on across processes of the same
 * boot (see ../suspend-clock.ts). No wall-clock time is ever stored in the state.
 */
import { DRAIN_SEC } from '@reelhost/bridge-protocol';
import type { Capabilities } from './capabilities.js';

/** Numbers a deployment may set; the defaults are in {@link DEFAULT_SETTINGS}. */
export type Settings = {
  /** Jobs held at the same time. */
  readonly slots: number;
  /** Version of this bridge, dotted numbers; compared with welcome.minAgentVersion. */
  readonly agentVersion: string;
  /** Which kind of identity says hello; a pool worker ends after a drain, a desktop stays. */
  readonly kind: 'device' | 'pool';
  /** A drain ends running work after this long. */
  readonly drainLimitMs: number;
  /** An idle session is ended this long after the drain began, if the engine did not close it before. */
  readonly drainIdleMs: number;
  /** Random UUID of this process; message ids are derived from it. */
  readonly instance: string;
};

/** Defaults of {@link Settings}; an idle session has 10 s. */
export const DEFAULT_SETTINGS = { slots: 1, drainLimitMs: DRAIN_SEC * 1_000, drainIdleMs: 10_000 } as const;

/** A terminal message of a job, kept until the gateway has surely read it. */
export type Terminal =
  | { readonly type: 'complete'; readonly outcome: 'succeeded' | 'cancelled' }
  | {
      readonly type: 'fail';
      /** Never `platform`: a runner must not claim that class. */
      readonly failClass: 'runner' | 'input';
      readonly code: string;
      readonly message: string;
      readonly retryable: boolean;
    };

/** How a job ends: which message is owed, and when it goes out at the latest. */
export type Ending = {
  /** Null: nothing is owed unless a cancel comes (the gateway did not resume the job). */
  readonly terminal: Terminal | null;
  /** Sent when the local work has stopped, at this time in any case. */
  readonly sendBy: number;
  /** The connection and the place in its order of sending; null while unsent. */
  readonly sent: { readonly generation: number; readonly seq: number } | null;
  /** The engine's `close` op whose answer the gateway may not have got; it is answered without the broker. */
  readonly closeOpId: string | null;
};

/** The session of a job, once the first op named it. */
export type Session = {
  /** As the gateway calls it. */
  readonly sessionId: string;
  /** As the broker calls it: the same, unless that id was used up by an earlier epoch. */
  readonly localId: string;
  /** `reopening`: it was open in an earlier life of this process; a new, empty one in its place would be wrong. */
  readonly state: 'opening' | 'reopening' | 'open';
  /** Absolute path of the session directory; empty while opening. */
  readonly dir: string;
};

/** What an executor last said about a running op. */
export type Progress = { readonly stage: string; readonly percent?: number; readonly detail?: string };

/** The one op in flight of a session. */
export type RunningOp = {
  readonly opId: string;
  readonly op: string;
  /** The arguments as JSON text, with every presigned URL replaced by a reference. */
  readonly argsText: string;
  /** The presigned URLs by reference name; in memory only. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** When the bridge itself answers `timeout`, should the broker not have. */
  readonly backstopAt: number;
  /** `enqueued`: the broker has it or is being asked to take it. */
  readonly state: 'waiting' | 'enqueued';
  /** Progress not sent yet: only the latest is kept. */
  readonly pending: Progress | null;
  readonly progressSentAt: number;
};

/** A job this runner accepted and has not been rid of yet. */
export type Job = {
  readonly jobId: string;
  readonly epoch: number;
  readonly token: string;
  readonly jobType: string;
  readonly attempt: number;
  readonly timeoutSec: number;
  readonly idleTimeoutSec: number;
  readonly maxOutputBytes: number;
  /** assign.spec as JSON text. */
  readonly specText: string;
  readonly acceptedAt: number;
  /** The end of trust: time of asking plus the lease. */
  readonly leaseUntil: number;
  readonly lastOpAt: number;
  readonly session: Session | null;
  readonly op: RunningOp | null;
  readonly ending: Ending | null;
  /** The last op.response on the wire whose arrival nothing has shown yet; what a close with 1009 is blamed on. */
  readonly lastResponse: LastResponse | null;
  /** Ops whose answer the gateway refused as too large; never sent as it was again. */
  readonly oversized: readonly string[];
};

/** See {@link Job.lastResponse}. */
export type LastResponse = {
  readonly generation: number;
  readonly seq: number;
  readonly messageId: string;
  readonly opId: string;
  readonly bytes: number;
};

/** An assign that waits for the broker to prove that it is alive. */
export type Offer = {
  readonly assignId: string;
  readonly generation: number;
  readonly answerBy: number;
  /** The job as it will be held. */
  readonly job: Job;
};

/** A local session on its way out. Occupies a slot until the broker says that nothing of it runs any more. */
export type Teardown = {
  readonly localId: string;
  readonly jobId: string;
  readonly graceMs: number;
  readonly retryAt: number;
  readonly tries: number;
};

/** One heartbeat that was not answered yet. */
export type Ask = {
  readonly at: number;
  readonly seq: number;
  readonly epochs: ReadonlyMap<string, number>;
};

/** The welcomed connection. */
export type OpenLink = {
  readonly phase: 'open';
  readonly generation: number;
  readonly openedAt: number;
  readonly lastHeardAt: number;
  readonly nextBeatAt: number;
  readonly heartbeatMs: number;
  readonly deadAfterMs: number;
  readonly asks: readonly Ask[];
  /** Counts what was sent on this connection. */
  readonly seq: number;
  /** The free slots the gateway believes in; null before the first ready. */
  readonly announced: number | null;
  readonly drainSent: boolean;
  /** The gateway said drain: no new work on this connection. */
  readonly gatewayDrains: boolean;
  /** The gateway's deadline for its drain: held jobs are taken to another connection then. Infinity: it named none. */
  readonly leaveBy: number;
  /** A heartbeat went round: the connection is good and the back-off starts anew after it. */
  readonly proven: boolean;
  /** Largest payload the gateway takes: welcome.maxInlineBytes, at most 4 MiB. */
  readonly maxPayloadBytes: number;
  /** The socket's buffer is over its mark: no progress messages until it drains. */
  readonly pressed: boolean;
  /** What hello said; compared with what is true now. */
  readonly told: Capabilities;
  readonly runnerId: string;
  readonly gatewayInstance: string;
  /** welcome.minAgentVersion when this bridge is older than it. */
  readonly updateRequired: string | null;
};

/** The connection to the gateway. */
export type Link =
  | { readonly phase: 'down'; readonly redialAt: number }
  | { readonly phase: 'dialling'; readonly generation: number; readonly giveUpAt: number }
  | {
      readonly phase: 'greeting';
      readonly generation: number;
      readonly giveUpAt: number;
      readonly listed: ReadonlyMap<string, number>;
      readonly told: Capabilities;
      readonly askedAt: number;
    }
  | OpenLink
  | { readonly phase: 'closing'; readonly generation: number; readonly giveUpAt: number; readonly redialAt: number }
  /** No more dialling: two machines share one identity. */
  | { readonly phase: 'halted' };

/** Why the bridge is not simply connected; shown in status. */
export type Trouble = {
  readonly code:
    | 'unreachable'
    | 'clock_skew'
    | 'revoked'
    | 'forbidden'
    | 'incompatible'
    | 'rate_limited'
    | 'superseded'
    | 'identity_conflict';
  readonly message: string;
  readonly since: number;
};

/** An orderly end of the process. */
export type Drain = {
  readonly reason: string;
  readonly since: number;
  readonly deadline: number;
  /** A second signal: nothing is waited for. */
  readonly fast: boolean;
  /** The wait for the last confirmations ends here; null before it began. */
  readonly finishBy: number | null;
};

/** Everything. */
export type BridgeState = {
  readonly settings: Settings;
  readonly startedAt: number;
  readonly lastStepAt: number;
  readonly link: Link;
  /** The number of the newest connection ever tried; events of older ones change nothing. */
  readonly generation: number;
  /** Failed dials since the last good connection. */
  readonly attempt: number;
  /** Local clock minus the gateway's, from the upgrade response; null when unknown. */
  readonly skewMs: number | null;
  /** When this identity was taken over by another connection, the last ten minutes. */
  readonly supersededAt: readonly number[];
  readonly trouble: Trouble | null;
  readonly broker: 'absent' | 'ready' | 'wedged' | 'full';
  readonly capabilities: Capabilities;
  readonly capabilitiesSince: number;
  readonly paused: boolean;
  readonly drain: Drain | null;
  readonly ended: boolean;
  readonly jobs: ReadonlyMap<string, Job>;
  readonly offers: ReadonlyMap<string, Offer>;
  readonly teardowns: ReadonlyMap<string, Teardown>;
  readonly messages: number;
};
