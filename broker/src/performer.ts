/**
 * Carries out what the core has decided, once it is durable: messages, orders with their arguments and secrets, ends of connections, session directories, lines of the
 * log. What is said during a turn leaves with its end in one write per connection.
 */
import { ERROR_CODES, encodeError } from '@reelhost/protocol';
import type { Clock } from './clock.js';
import {
  type Core,
  connectionClosed,
  directoryFailed,
  directoryRemoved,
  type Effect,
  framesTaken,
} from './core/index.js';
import type { Journal } from './journal/journal.js';
import type { Logger } from './log.js';
import { SecretStore } from './secrets.js';
import type { Connection } from './socket/connection.js';
import type { SessionDirectories } from './state/session-directories.js';
import type { UnreadBound } from './unread-bound.js';

/** What effects are carried out with. */
export interface PerformerParts {
  readonly core: Core;
  readonly journal: Pick<Journal, 'readArgs'>;
  readonly directories: SessionDirectories;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Carries out the effects of one broker's core. */
export class Performer {
  readonly #parts: PerformerParts;
  readonly #connections: ReadonlyMap<number, Connection>;
  readonly #held: ReadonlySet<Connection>;
  readonly #input: (input: () => void) => void;
  readonly #unread: UnreadBound;
  /** Connections to which something was said in this turn. */
  readonly #dirty = new Set<Connection>();
  /** Those of them that get an order. */
  readonly #ordered = new Set<Connection>();
  readonly #secrets = new SecretStore();

  /** `held`: connections that are not read from for now. `input` runs an input of the core, with a turn after it. */
  constructor(
    parts: PerformerParts,
    connections: ReadonlyMap<number, Connection>,
    held: ReadonlySet<Connection>,
    input: (input: () => void) => void,
    unread: UnreadBound,
  ) {
    this.#parts = parts;
    this.#connections = connections;
    this.#held = held;
    this.#input = input;
    this.#unread = unread;
  }

  /** Writes what was said: first to those who are to begin with something. */
  send(): void {
    for (const connection of this.#ordered) this.#write(connection);
    for (const connection of this.#dirty) if (!this.#ordered.has(connection)) this.#write(connection);
    this.#ordered.clear();
    this.#dirty.clear();
  }

  #write(connection: Connection): void {
    if (connection.flush()) {
      if (connection.congested) this.#input(() => this.#unread.check());
      return;
    }
    this.#parts.log.warn({ event: 'peer.cut_off', connection: connection.id, reason: 'slow_consumer' });
  }

  /** Carries out one effect; what it says waits for {@link Performer.send}. */
  perform(effect: Effect): void {
    switch (effect.kind) {
      case 'send':
        this.#say(effect.to, effect.text);
        return undefined;
      case 'execute': {
        const { job, to } = effect;
        const args = this.#secrets.reveal(job.id, job.args ?? this.#parts.journal.readArgs(job));
        const connection = this.#say(to, effect.head + args + effect.tail);
        if (connection !== undefined) this.#ordered.add(connection);
        return undefined;
      }
      case 'closeConnection':
        return this.#hangUp(effect.to);
      case 'frameOverdue':
        return this.#endUnfinished(effect.to);
      case 'makeSessionDirectory':
        return this.#makeDirectory(effect);
      case 'removeSessionDirectory':
        return this.#removeDirectory(effect.sessionId);
      case 'holdSecrets':
        return this.#secrets.hold(effect.jobId, effect.secrets);
      case 'forgetSecrets':
        return this.#secrets.forget(effect.jobId);
      case 'log':
        this.#parts.log[effect.level]({ event: effect.event, ...effect.fields });
        return undefined;
    }
  }

  /** Says something with the end of the turn; answers the connection when it is still there. */
  #say(to: number, text: string): Connection | undefined {
    const connection = this.#connections.get(to);
    if (connection?.queue(text) === true) this.#dirty.add(connection);
    return connection;
  }

  /** A peer cannot complete a frame that is not read from it: then its time begins anew. */
  #endUnfinished(to: number): void {
    const connection = this.#connections.get(to);
    const peer = this.#parts.core.peers.get(to);
    if (connection === undefined || peer === undefined || connection.reader.pendingBytes === 0) return;
    if (this.#held.has(connection) || connection.congested) {
      this.#parts.core.now = this.#parts.clock.now();
      return framesTaken(this.#parts.core, peer, true, true);
    }
    this.#parts.log.info({ event: 'peer.frame_timeout', connection: to, bytes: connection.reader.pendingBytes });
    this.#say(to, encodeError(undefined, 'frame_timeout', { message: ERROR_CODES.frame_timeout.meaning }));
    this.#hangUp(to);
  }

  /** Ends a connection when what was said to it has left. To the core it is gone at once: it must not be given work any more. */
  #hangUp(to: number): void {
    this.#connections.get(to)?.end();
    this.#input(() => connectionClosed(this.#parts.core, to));
  }

  #makeDirectory(effect: Extract<Effect, { kind: 'makeSessionDirectory' }>): void {
    try {
      this.#parts.directories.make(effect.sessionId);
      this.#say(effect.to, effect.done);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      const full = code === 'ENOSPC' || code === 'EDQUOT';
      this.#parts.log.error({ event: 'session.directory_failed', sessionId: effect.sessionId, code });
      this.#say(effect.to, encodeError(effect.requestId, full ? 'disk_full' : 'unavailable', { message }));
      this.#input(() => directoryFailed(this.#parts.core, effect.sessionId));
    }
  }

  #removeDirectory(sessionId: string): void {
    this.#parts.directories
      .remove(sessionId)
      .catch((error: NodeJS.ErrnoException) => {
        this.#parts.log.error({ event: 'session.directory_left', sessionId, code: error.code });
      })
      .then(() => this.#input(() => directoryRemoved(this.#parts.core, sessionId)));
  }
}
