/**
 * The bound over what all connections together leave in the broker's memory: frames that were begun and do not end, and answers that are not read.
 *
 * Each connection alone keeps its own limits; a hundred that keep them could still take everything. When the bound is exceeded, connections are ended until it
 * is not: of those that hold at least an even share, the one whose frame was begun first. So a crowd of stuck frames goes one by one, and neither a newcomer, nor
 * somebody with little, nor a large frame that is just arriving pays for it. One that does not read its answers could not read why either: it is cut off.
 */
import type { Core } from './core/index.js';
import { fault } from './intake.js';
import type { Logger } from './log.js';
import type { Connection } from './socket/connection.js';

export class UnreadBound {
  readonly #core: Core;
  readonly #connections: ReadonlyMap<number, Connection>;
  readonly #log: Logger;
  /** What may have come since everything was counted, and what was there then: never less than what is held. */
  #atMost = 0;

  constructor(core: Core, connections: ReadonlyMap<number, Connection>, log: Logger) {
    this.#core = core;
    this.#connections = connections;
    this.#log = log;
  }

  /** So many bytes were received, and what was whole among them was taken. Counts the connections only when it could matter. */
  received(bytes: number): void {
    this.#atMost += bytes;
    if (this.#atMost > this.#core.settings.maxUnreadTotalBytes) this.check();
  }

  /** Counts what all connections hold, and ends as many as must go. A turn has to follow. */
  check(): void {
    const { maxUnreadTotalBytes } = this.#core.settings;
    for (;;) {
      const holders = [...this.#connections.values()].filter((connection) => connection.heldBytes > 0);
      this.#atMost = holders.reduce((sum, { heldBytes }) => sum + heldBytes, 0);
      if (this.#atMost <= maxUnreadTotalBytes) return;
      const share = this.#atMost / holders.length;
      const [first] = holders
        .filter(({ heldBytes }) => heldBytes >= share)
        .sort((a, b) => this.#begun(a) - this.#begun(b) || b.heldBytes - a.heldBytes);
      if (first === undefined) return;
      this.#end(first);
    }
  }

  /** When its unfinished frame was begun (monotonic ms); one without comes after all others. */
  #begun({ id }: Connection): number {
    const since = this.#core.peers.get(id)?.unfinishedSince ?? -1;
    return since < 0 ? Number.MAX_VALUE : since;
  }

  #end(connection: Connection): void {
    const peer = this.#core.peers.get(connection.id);
    if (peer === undefined || !connection.reading || connection.waitingBytes > connection.reader.pendingBytes) {
      this.#log.warn({ event: 'peer.cut_off', connection: connection.id, reason: 'unread_total' });
      return connection.destroy();
    }
    const { maxUnreadTotalBytes } = this.#core.settings;
    const message = `all connections together have sent more than ${maxUnreadTotalBytes} bytes that are not whole frames`;
    fault(this.#core, connection, peer, 'buffer_limit', message, this.#log);
  }
}
