/**
 * The requests of a client that wait for their reply, as pure bookkeeping. A request made while there is no connection waits for
 * one. When the connection is cut, a request that may be said twice is said again on the next one; any other ends with an unknown
 * outcome, because nobody can tell whether the broker acted on it.
 */

/** What the driver must do, in order. */
export type RequestEffect =
  | { readonly type: 'send'; readonly text: string }
  | { readonly type: 'unknownOutcome'; readonly requestId: string };

interface Entry {
  readonly text: string;
  readonly repeatable: boolean;
  sent: boolean;
}

/** The requests of one client. Request ids are never used twice in its life. */
export class RequestTable {
  readonly #entries = new Map<string, Entry>();
  #up = false;

  /** Requests without a reply. */
  get size(): number {
    return this.#entries.size;
  }

  /** A request is made. `repeatable`: saying it twice has the same effect as saying it once. */
  add(requestId: string, text: string, repeatable: boolean): RequestEffect[] {
    this.#entries.set(requestId, { text, repeatable, sent: this.#up });
    return this.#up ? [{ type: 'send', text }] : [];
  }

  /** A reply came, or nobody waits any more. Answers whether the request was known. */
  close(requestId: string): boolean {
    return this.#entries.delete(requestId);
  }

  /** The connection serves. */
  linkUp(): RequestEffect[] {
    this.#up = true;
    const effects: RequestEffect[] = [];
    for (const entry of this.#entries.values()) {
      entry.sent = true;
      effects.push({ type: 'send', text: entry.text });
    }
    return effects;
  }

  /** The connection is cut. */
  linkDown(): RequestEffect[] {
    this.#up = false;
    const effects: RequestEffect[] = [];
    for (const [requestId, entry] of this.#entries) {
      if (!entry.sent || entry.repeatable) continue;
      this.#entries.delete(requestId);
      effects.push({ type: 'unknownOutcome', requestId });
    }
    return effects;
  }
}
