/**
 * Requests whose reply waits for a disk that does not answer. Tay's client waits 30 s for a reply; one that comes later it takes for a breach of the protocol,
 * which costs it its connection and everything that runs on it. So before that each waiting request of a plain connection is answered with what is true
 * (nobody knows yet), and its real reply is dropped. Never touched: reports, orders, pushes, and connections of the extension, whose client expects this.
 */
import { encodeError } from '@reelhost/protocol';
import type { Core, Effect } from './core/index.js';
import type { Connection } from './socket/connection.js';

/** Replies to requests that changed something: they may still come true. */
const CHANGED: ReadonlySet<string> = new Set(['enqueued', 'cancelled', 'scheduled', 'schedule_cancelled']);
/** Replies to requests that can simply be repeated. */
const ASKED: ReadonlySet<string> = new Set(['status', 'result', 'error']);
/** How every message of the broker begins. */
const HEAD = /^\{"version":1,"type":"([a-z_]+)","request_id":("(?:[^"\\]|\\.)*")/;

/**
 * Answers what has waited too long: out of the effects of turns that wait for the disk, and those of the turn that waits for them. Producers whose requests
 * are not even read meanwhile are let go: they come back when there is somebody to serve them. Answers the number of answers.
 */
export function answerWaiting(
  core: Core,
  waiting: readonly { effects: readonly Effect[] }[],
  connections: ReadonlyMap<number, Connection>,
  held: ReadonlySet<Connection>,
): number {
  const spoken = new Set<Connection>();
  let told = 0;
  const rest = (effects: readonly Effect[]): Effect[] =>
    effects.filter((effect) => {
      if (effect.kind !== 'send' || core.peers.get(effect.to)?.extension !== false) return true;
      const connection = connections.get(effect.to);
      const answer = lateAnswer(effect.text);
      if (connection === undefined || answer === undefined) return true;
      connection.queue(answer);
      spoken.add(connection);
      told++;
      return false;
    });
  for (const turn of waiting) turn.effects = rest(turn.effects);
  core.effects = rest(core.effects);
  for (const connection of spoken) connection.flush();
  for (const connection of held) {
    const peer = core.peers.get(connection.id);
    if (peer?.extension === false && peer.mode === 'client') connection.destroy();
  }
  return told;
}

function lateAnswer(reply: string): string | undefined {
  const [, type, id] = HEAD.exec(reply) ?? [];
  if (type === undefined || id === undefined) return undefined;
  const requestId = JSON.parse(id) as string;
  if (CHANGED.has(type)) {
    const message = 'the disk does not answer; whether it happened is not known yet: ask again with the same id';
    return encodeError(requestId, 'unknown_outcome', { message });
  }
  if (ASKED.has(type)) return encodeError(requestId, 'request_timeout', { message: 'the disk does not answer' });
  return undefined;
}
