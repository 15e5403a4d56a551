/**
 * One picture of the host from three sources: the broker's answer, the bridge's file, the supervisor's file. Decides whether the host is well, and says
 * what to do when it is not. Each trouble has a code that stays the same; the sentence may change.
 */
import { hostPaths, type PathOptions } from '../paths.js';
import { readUpStatus, type UpStatus } from '../up/status-file.js';
import { type BridgeStatus, processExists, readBridgeStatus } from './bridge-status.js';
import { type BrokerStatus, readBrokerStatus } from './broker-status.js';

/** Something a person should know. */
export interface Trouble {
  /** Stable, e.g. `broker_not_running`. */
  readonly code: string;
  readonly message: string;
  readonly fix: string | null;
}

/** The whole picture; printed as it is by `status --json`. */
export interface HostStatus {
  readonly schema: 'reelhost.status/1';
  readonly at: string;
  /** `healthy`: works and can take work (or is paused). `unhealthy`: runs, see `troubles`. `not_running`: neither daemon runs. */
  readonly state: 'healthy' | 'unhealthy' | 'not_running';
  readonly troubles: readonly Trouble[];
  readonly socket: string;
  readonly stateDir: string;
  readonly broker: BrokerStatus;
  readonly bridge: BridgeStatus;
  readonly up: (UpStatus & { readonly alive: boolean }) | null;
}

/** Looks at everything at once. Never throws for what is not there. */
export async function readHostStatus(options: PathOptions): Promise<HostStatus> {
  const { socket, stateDir } = hostPaths(options);
  const [broker, bridge] = await Promise.all([readBrokerStatus(socket), readBridgeStatus(stateDir)]);
  const written = readUpStatus(stateDir);
  const up = written === null ? null : { ...written, alive: processExists(written.pid) };
  const troubles = [...brokerTroubles(broker), ...bridgeTroubles(bridge), ...upTroubles(up)];
  const runs = broker.answers || broker.reason === 'it does not answer' || bridge.alive || up?.alive === true;
  const state = !runs ? 'not_running' : troubles.length === 0 ? 'healthy' : 'unhealthy';
  const at = new Date().toISOString();
  return { schema: 'reelhost.status/1', at, state, troubles, socket, stateDir, broker, bridge, up };
}

function brokerTroubles(broker: BrokerStatus): Trouble[] {
  if (!broker.answers) {
    const reason = broker.reason ?? 'it does not answer';
    const stuck = reason === 'it does not answer';
    const fix = stuck ? 'restart it' : 'start it: reelhost up, or reelhost broker --socket PATH --state-dir DIR';
    return [{ code: stuck ? 'broker_stuck' : 'broker_not_running', message: `broker: ${reason}`, fix }];
  }
  const troubles: Trouble[] = [];
  const journal = broker.stats?.['journal'];
  const degraded =
    typeof journal === 'object' && journal !== null && 'degraded' in journal ? journal['degraded'] : null;
  if (typeof degraded === 'object' && degraded !== null && !Array.isArray(degraded)) {
    const message = `broker: ${String(degraded['message'] ?? degraded['code'])}`;
    const full = degraded['code'] === 'disk_full';
    const fix = full
      ? 'free some space on the disk of the state directory'
      : 'end the process that reads or replaced broker.sqlite; the log of the broker says more';
    troubles.push({ code: 'journal_degraded', message, fix });
  }
  if (broker.executors.length === 0) {
    const fix = 'start one: reelhost executor ffmpeg, or see its log';
    troubles.push({ code: 'no_executor', message: 'no executor is connected, so no work can be taken', fix });
  }
  return troubles;
}

function bridgeTroubles(bridge: BridgeStatus): Trouble[] {
  if (bridge.unreadable !== null) return [{ code: 'bridge_status_unreadable', message: bridge.unreadable, fix: null }];
  if (!bridge.alive) {
    const message = bridge.pid === null ? 'bridge: it does not run' : 'bridge: it does not run any more';
    return [{ code: 'bridge_not_running', message, fix: 'start it: reelhost up, or reelhost bridge …' }];
  }
  if (bridge.stuck) {
    const seconds = Math.round((bridge.ageMs ?? 0) / 1_000);
    const message = `bridge: process ${bridge.pid} lives but has said nothing for ${seconds} s`;
    return [{ code: 'bridge_stuck', message, fix: 'look at its log; restart it when it stays so' }];
  }
  if (bridge.healthy) return [];
  return [{ code: `bridge_${bridge.state}`, message: `bridge: ${bridge.reason ?? bridge.state}`, fix: null }];
}

function upTroubles(up: HostStatus['up']): Trouble[] {
  if (up?.alive !== true) return [];
  return up.parts
    .filter((part) => part.phase === 'failed' || part.phase === 'waiting')
    .map((part) => {
      const exit = part.lastExit;
      const how = exit === null ? '' : ` (last end: ${exit.signal ?? `exit code ${exit.code}`})`;
      const message =
        part.phase === 'failed' ? `${part.name}: given up, ${part.reason}` : `${part.name}: being restarted${how}`;
      const fix =
        part.phase === 'failed'
          ? 'look at its log, mend the cause, then restart reelhost up'
          : 'wait a moment; when it stays so, look at its log and run: reelhost doctor';
      return { code: part.phase === 'failed' ? 'part_given_up' : 'part_restarting', message, fix };
    });
}
