/**
 * The turns that are committed and not yet confirmed by the disk, oldest first. What a turn has to say is told when the disk has it and everything before it,
 * whichever the disk answers first. A disk that cannot say so is the end: nobody knows what it has.
 */
import type { Effect } from './core/index.js';
import type { LogSync } from './journal/log-sync.js';

/** What can make the commits of the journal survive a power cut. */
export type Disk = Pick<LogSync, 'isQuick' | 'now' | 'later'>;

interface Turn {
  effects: readonly Effect[];
  isSafe: boolean;
  readonly since: number;
}

export class DiskQueue {
  readonly #turns: Turn[] = [];
  readonly #onSafe: (effects: readonly Effect[]) => void;
  readonly #onFailure: (error: unknown) => void;

  /** `onSafe` is called once per turn, in order. `onFailure` with the disk's error, or with what `onSafe` has thrown. */
  constructor(onSafe: (effects: readonly Effect[]) => void, onFailure: (error: unknown) => void) {
    this.#onSafe = onSafe;
    this.#onFailure = onFailure;
  }

  get length(): number {
    return this.#turns.length;
  }

  /** What the turns have to say; a reader may take some of it out. */
  get turns(): readonly { effects: readonly Effect[] }[] {
    return this.#turns;
  }

  /** Since when (monotonic ms) somebody waits for the oldest turn, or null. */
  get waitingSince(): number | null {
    return this.#turns[0]?.since ?? null;
  }

  /** Flushes what was committed, beside the event loop. */
  add(disk: Disk, effects: readonly Effect[], since: number): void {
    const turn: Turn = { effects, isSafe: false, since };
    this.#turns.push(turn);
    disk.later((error) => {
      if (error !== null) return this.#onFailure(error);
      turn.isSafe = true;
      try {
        while (this.#turns[0]?.isSafe === true) this.#onSafe((this.#turns.shift() as Turn).effects);
      } catch (failure) {
        this.#onFailure(failure);
      }
    });
  }
}
