/**
 * Frames that were begun and do not end: a peer that dribbles, or stopped in the middle. The driver tells after each reading how far it came; here is decided
 * when that has taken too long. At most one deadline per connection, armed by the first unfinished frame and moved only when it fires, so a busy connection
 * costs a comparison. A connection that the driver itself does not read from is never blamed: its time begins anew.
 */
import type { Core } from './core.js';
import type { Peer } from './peer.js';

/** No frame is unfinished. */
const NONE = -1;

/** The driver took what a connection had sent. `unfinished`: bytes of another frame are left; `begun`: its time begins now in any case. */
export function framesTaken(core: Core, peer: Peer, unfinished: boolean, begun: boolean): void {
  if (!unfinished) {
    peer.unfinishedSince = NONE;
    return;
  }
  if (peer.unfinishedSince !== NONE && !begun) return;
  peer.unfinishedSince = core.now.mono;
  if (peer.frameDeadline === NONE) arm(core, peer);
}

function arm(core: Core, peer: Peer): void {
  peer.frameDeadline = core.durations.add(peer.unfinishedSince + core.settings.frameTimeoutMs, peer.frameItem);
}

/** The deadline has fired: the frame it was armed for may be long complete. */
export function frameDue(core: Core, connection: number): void {
  const peer = core.peers.get(connection);
  if (peer === undefined) return;
  peer.frameDeadline = NONE;
  if (peer.unfinishedSince === NONE) return;
  if (core.now.mono < peer.unfinishedSince + core.settings.frameTimeoutMs) return arm(core, peer);
  core.effects.push({ kind: 'frameOverdue', to: connection });
}
