/**
 * The requests of a client that wait for their reply, as pure bookkeeping. A request made while there is no connection waits for
 * one, and one beyond the connection's window waits for a reply to another. When the connection is cut, a request that may be said
 * twice is said again on the next one; any other ends with an unknown outcome, because nobody can tell whether the broker acted on it.
 *
 * A patient request is one whose reply the broker holds back until something else has ended. Only so many of them are at the broker at a time, or it
 * would refuse whatever came after them; the others are held here, and nothing else waits for them.
 */

/** What the driver must do, in order. `hold`: the request waits for others of this client, not for the broker. */
export type RequestEffect =
  | { readonly type: 'send'; readonly requestId: string; readonly text: string }
  | { readonly type: 'hold'; readonly requestId: string }
  | { readonly type: 'unknownOutcome'; readonly requestId: string };

/** How a request is to be treated. */
export interface RequestKind {
  /** Saying it twice has the same effect as saying it once. */
  readonly repeatable: boolean;
  /** Its reply may be a long time coming without anything being wrong. */
  readonly patient?: boolean | undefined;
}

/** How many requests may wait at the broker. */
export interface RequestWindow {
  readonly all: number;
  readonly patient: number;
}

const SHUT: RequestWindow = { all: 0, patient: 0 };

interface Entry {
  readonly text: string;
  readonly repeatable: boolean;
  readonly patient: boolean;
  sent: boolean;
  held: boolean;
}

/** The requests of one client. Request ids are never used twice in its life. */
export class RequestTable {
  readonly #entries = new Map<string, Entry>();
  readonly #unsent = { hasty: new Set<string>(), patient: new Set<string>() };
  #sent = 0;
  #sentPatient = 0;
  #window = SHUT;

  /** A request is made. */
  add(requestId: string, text: string, kind: RequestKind): RequestEffect[] {
    const patient = kind.patient === true;
    this.#entries.set(requestId, { text, repeatable: kind.repeatable, patient, sent: false, held: false });
    this.#lineOf(patient).add(requestId);
    return this.#fill();
  }

  /** Whether a patient request made now would not have to wait for others of this client. */
  get hasPatientPlace(): boolean {
    return this.#window === SHUT || (this.#sent < this.#window.all && this.#sentPatient < this.#window.patient);
  }

  /** A reply came, or nobody waits any more. */
  close(requestId: string): RequestEffect[] {
    const entry = this.#entries.get(requestId);
    if (entry === undefined) return [];
    this.#entries.delete(requestId);
    this.#lineOf(entry.patient).delete(requestId);
    if (entry.sent) this.#sent -= 1;
    if (entry.sent && entry.patient) this.#sentPatient -= 1;
    return this.#fill();
  }

  /** The connection serves. */
  linkUp(window: RequestWindow): RequestEffect[] {
    this.#window = window;
    return this.#fill();
  }

  /** The connection is cut. */
  linkDown(): RequestEffect[] {
    const effects: RequestEffect[] = [];
    this.#window = SHUT;
    this.#sent = 0;
    this.#sentPatient = 0;
    this.#unsent.hasty.clear();
    this.#unsent.patient.clear();
    for (const [requestId, entry] of this.#entries) {
      entry.held = false;
      if (entry.sent && !entry.repeatable) {
        this.#entries.delete(requestId);
        effects.push({ type: 'unknownOutcome', requestId });
        continue;
      }
      // Said again in the order they were first made.
      entry.sent = false;
      this.#lineOf(entry.patient).add(requestId);
    }
    return effects;
  }

  #lineOf(patient: boolean): Set<string> {
    return patient ? this.#unsent.patient : this.#unsent.hasty;
  }

  #fill(): RequestEffect[] {
    const effects: RequestEffect[] = [];
    this.#send(this.#unsent.hasty, effects);
    this.#send(this.#unsent.patient, effects);
    return effects;
  }

  #send(line: Set<string>, effects: RequestEffect[]): void {
    for (const requestId of line) {
      const entry = this.#entries.get(requestId);
      if (entry === undefined) continue;
      if (this.#sent >= this.#window.all || (entry.patient && this.#sentPatient >= this.#window.patient)) {
        // Everything behind the first one that was held before is held already.
        if (this.#window === SHUT || entry.held) return;
        entry.held = true;
        effects.push({ type: 'hold', requestId });
        continue;
      }
      line.delete(requestId);
      entry.sent = true;
      entry.held = false;
      this.#sent += 1;
      if (entry.patient) this.#sentPatient += 1;
      effects.push({ type: 'send', requestId, text: entry.text });
    }
  }
}
