/**
 * The requests of a client that wait for their reply, as pure bookkeeping. A request made while there is no connection waits for
 * one, and one beyond the connection's window waits for a reply to another. When the connection is cut, a request that may be said
 * twice is said again on the next one; any other ends with an unknown outcome, because nobody can tell whether the broker acted on it.
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
  readonly #unsent = new Set<string>();
  #sent = 0;
  /** How many may wait at the broker; 0 while there is no connection. */
  #window = 0;

  /** A request is made. `repeatable`: saying it twice has the same effect as saying it once. */
  add(requestId: string, text: string, repeatable: boolean): RequestEffect[] {
    this.#entries.set(requestId, { text, repeatable, sent: false });
    this.#unsent.add(requestId);
    return this.#fill();
  }

  /** A reply came, or nobody waits any more. */
  close(requestId: string): RequestEffect[] {
    const entry = this.#entries.get(requestId);
    if (entry === undefined) return [];
    this.#entries.delete(requestId);
    this.#unsent.delete(requestId);
    if (entry.sent) this.#sent -= 1;
    return this.#fill();
  }

  /** The connection serves, and takes `window` requests at once. */
  linkUp(window: number): RequestEffect[] {
    this.#window = window;
    return this.#fill();
  }

  /** The connection is cut. */
  linkDown(): RequestEffect[] {
    const effects: RequestEffect[] = [];
    for (const [requestId, entry] of this.#entries) {
      if (!entry.sent) continue;
      entry.sent = false;
      if (entry.repeatable) continue;
      this.#entries.delete(requestId);
      effects.push({ type: 'unknownOutcome', requestId });
    }
    this.#window = 0;
    this.#sent = 0;
    // Said again in the order they were first made.
    this.#unsent.clear();
    for (const requestId of this.#entries.keys()) this.#unsent.add(requestId);
    return effects;
  }

  #fill(): RequestEffect[] {
    const effects: RequestEffect[] = [];
    for (const requestId of this.#unsent) {
      if (this.#sent >= this.#window) break;
      this.#unsent.delete(requestId);
      const entry = this.#entries.get(requestId);
      if (entry === undefined) continue;
      entry.sent = true;
      this.#sent += 1;
      effects.push({ type: 'send', text: entry.text });
    }
    return effects;
  }
}
