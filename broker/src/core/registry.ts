/** Which executors there are, for those who watch: the whole list each time, coalesced. docs/local-protocol.md, Registry. */
import { type Core, push, reply } from './core.js';
import type { Declaration, Peer } from './peer.js';
import type { RequestOf } from './turn.js';

/** A UTF-16 unit has at most this many bytes in UTF-8. */
const BYTES_PER_UNIT = 3;
/** Room for the rest of the message, and for 4,096 executors without their tasks. */
const ENVELOPE_UNITS = 1_048_576;

/** `watch_registry`. */
export function watchRegistry(core: Core, peer: Peer, request: RequestOf<'watch_registry'>): void {
  core.registryWatchers.add(peer);
  reply(core, peer, 'registry', request.request_id, `,"runtimes":${runtimesText(core)}`);
}

/** Something about the executors changed: watchers hear of it now, or when the interval since the last time is over. */
export function registryChanged(core: Core): void {
  if (core.registryWatchers.size === 0 || core.registryDirty) return;
  core.registryDirty = true;
  core.durations.add(Math.max(core.now.mono, core.registrySentAt + core.settings.registryIntervalMs), {
    kind: 'registry',
  });
}

/** Tells the watchers. */
export function registryDue(core: Core): void {
  if (!core.registryDirty) return;
  core.registryDirty = false;
  core.registrySentAt = core.now.mono;
  const fields = `,"runtimes":${runtimesText(core)}`;
  for (const peer of core.registryWatchers) push(core, peer, 'registry_changed', fields);
}

/**
 * All executors as JSON text. What would not fit into a frame any more is shown without its tasks: one executor that declares too much must not
 * cost the watchers their connection.
 */
export function runtimesText(core: Core): string {
  const texts: string[] = [];
  const units = Math.floor(core.settings.extensionMaxFrameBytes / BYTES_PER_UNIT);
  let room = units - Math.min(ENVELOPE_UNITS, Math.floor(units / 2));
  for (const peer of core.peers.values()) {
    if (peer.mode !== 'worker' && peer.mode !== 'embedded') continue;
    let text = runtimeText(peer, [...peer.tasks]);
    if (text.length > room) text = `${runtimeText(peer, []).slice(0, -1)},"tasks_omitted":${peer.tasks.size}}`;
    room -= text.length;
    texts.push(text);
  }
  return `[${texts.join(',')}]`;
}

function runtimeText(peer: Peer, declarations: readonly (readonly [string, Declaration])[]): string {
  const tasks = declarations.map(
    ([task, declared]) =>
      `${JSON.stringify(task)}:{"attributes":${declared.attributes},"sessions":"${declared.sessions}"}`,
  );
  const head = JSON.stringify({
    runtime_id: peer.runtimeId,
    mode: peer.mode,
    software: peer.software,
    pid: peer.pid,
    max_concurrency: peer.maxConcurrency,
    in_flight: peer.executions.size,
    extension: peer.extension,
  });
  return `${head.slice(0, -1)},"tasks":{${tasks.join(',')}}}`;
}
