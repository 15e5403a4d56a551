/** The bridge's state in the words of `bridge.status.json`: for people and scripts, without a secret in it. */
import type { BridgeState, Trouble } from './state.js';
import { freeSlots } from './turn.js';

/** `state` of the status file; stable, other programs read it. */
export type StatusName =
  | 'starting'
  | 'connecting'
  | 'reconnecting'
  | 'connected'
  | 'paused'
  | 'draining'
  | 'update_required'
  | 'broker_unavailable'
  | Exclude<Trouble['code'], 'unreachable'>
  | 'stopped';

/** What the status file says, without the parts only the adapter knows (pid, wall-clock times, URL). */
export type StatusView = {
  readonly state: StatusName;
  readonly healthy: boolean;
  readonly reason: string | null;
  readonly runnerId: string | null;
  readonly slots: number;
  readonly freeSlots: number;
  readonly paused: boolean;
  readonly broker: BridgeState['broker'];
  readonly jobTypes: readonly string[];
  readonly skewMs: number | null;
  readonly jobs: readonly {
    readonly jobId: string;
    readonly jobType: string;
    readonly epoch: number;
    readonly sessionId: string | null;
    readonly leaseLeftMs: number;
    readonly op: string | null;
    readonly ending: boolean;
  }[];
};

/** Tells the state at `now`. */
export function statusOf(state: BridgeState, now: number): StatusView {
  const [name, reason] = nameOf(state);
  return {
    state: name,
    healthy: name === 'connected' || name === 'paused' || name === 'starting' || name === 'draining',
    reason,
    runnerId: state.link.phase === 'open' ? state.link.runnerId : null,
    slots: state.settings.slots,
    freeSlots: state.link.phase === 'open' ? freeSlots(state) : 0,
    paused: state.paused,
    broker: state.broker,
    jobTypes: state.capabilities.jobTypes,
    skewMs: state.skewMs,
    jobs: [...state.jobs.values()].map((job) => ({
      jobId: job.jobId,
      jobType: job.jobType,
      epoch: job.epoch,
      sessionId: job.session?.sessionId ?? null,
      leaseLeftMs: Math.max(0, Math.round(job.leaseUntil - now)),
      op: job.op?.op.slice(0, 64) ?? null,
      ending: job.ending !== null,
    })),
  };
}

function nameOf(state: BridgeState): [StatusName, string | null] {
  const { link, trouble } = state;
  if (state.ended) return ['stopped', null];
  if (state.drain !== null) return ['draining', `ending: ${state.drain.reason}`];
  if (trouble !== null && trouble.code !== 'unreachable') return [trouble.code, trouble.message];
  if (link.phase !== 'open') {
    if (state.generation === 0) return ['starting', null];
    return trouble === null ? ['connecting', null] : ['reconnecting', trouble.message];
  }
  if (link.updateRequired !== null) {
    return ['update_required', `the gateway wants at least version ${link.updateRequired}: update reelhost`];
  }
  if (state.broker === 'wedged') return ['broker_unavailable', 'the broker does not answer'];
  if (state.broker === 'full')
    return ['broker_unavailable', 'the disk of the state directory is full: free some space'];
  if (state.broker === 'absent') return ['broker_unavailable', 'the broker is not running'];
  if (state.paused) return ['paused', 'paused by the user: `reelhost resume`'];
  if (state.capabilities.jobTypes.length === 0) return ['connected', 'no executor is connected: no work can be taken'];
  return ['connected', link.gatewayDrains ? 'the gateway drains this connection' : null];
}
