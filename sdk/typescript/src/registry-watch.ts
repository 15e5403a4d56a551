/** The executors as a client follows them: asked for once per connection, then told after every change. */
import { EXTENSION } from '@reelhost/protocol';
import type { ClientConnection } from './client-connection.js';
import { type RuntimeInfo, readRuntimes } from './client-views.js';
import { BrokerError } from './errors.js';
import type { EventListener } from './executor.js';
import { LatestValues } from './latest-values.js';

/** A client's view of the registry; nothing is asked before somebody looks. */
export class RegistryWatch {
  readonly #connection: ClientConnection;
  readonly #event: EventListener;
  #values: LatestValues<RuntimeInfo[]> | undefined;

  constructor(connection: ClientConnection, event: EventListener) {
    this.#connection = connection;
    this.#event = event;
  }

  /** Begins to follow, and answers the stream all readers share. */
  begin(): AsyncIterable<RuntimeInfo[]> {
    if (this.#values === undefined) {
      this.#values = new LatestValues<RuntimeInfo[]>();
      if (this.#connection.isUp) this.renew();
    }
    return this.#values;
  }

  /** A change was pushed. */
  push(runtimes: RuntimeInfo[]): void {
    this.#values?.push(runtimes);
  }

  /** No more changes will come. */
  end(): void {
    this.#values?.end();
  }

  /** Asks again, on a new connection. */
  renew(): void {
    if (this.#values === undefined) return;
    if (!this.#connection.terms.extension) {
      this.#values.end(new BrokerError('not_supported', `the broker does not speak ${EXTENSION}`));
      return;
    }
    void this.#connection.request('watch_registry', {}, { repeatable: false }).then(
      (reply) => this.push(readRuntimes(reply)),
      (error: unknown) => this.#event('watch_registry.failed', { reason: String(error) }),
    );
  }
}
