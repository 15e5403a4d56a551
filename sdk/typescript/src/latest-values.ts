/** A stream of values of which only the latest counts: a slow reader skips what it missed, and never holds more than one. */
export class LatestValues<T> implements AsyncIterable<T> {
  readonly #readers = new Set<{ value: T | undefined; wake: (() => void) | undefined }>();
  readonly #onIdle: (() => void) | undefined;
  #latest: T | undefined;
  #ended = false;
  #failure: unknown;

  /** `onIdle` is called when the last reader has gone. */
  constructor(onIdle?: () => void) {
    this.#onIdle = onIdle;
  }

  /** Whether somebody reads. */
  get watched(): boolean {
    return this.#readers.size > 0;
  }

  push(value: T): void {
    if (this.#ended) return;
    this.#latest = value;
    for (const reader of this.#readers) {
      reader.value = value;
      reader.wake?.();
    }
  }

  /** No more values; with a failure, readers throw it after the last value. */
  end(failure?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#failure = failure;
    for (const reader of this.#readers) reader.wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    const reader: { value: T | undefined; wake: (() => void) | undefined } = { value: this.#latest, wake: undefined };
    this.#readers.add(reader);
    try {
      for (;;) {
        const { value } = reader;
        if (value !== undefined) {
          reader.value = undefined;
          yield value;
          continue;
        }
        if (this.#ended) {
          if (this.#failure !== undefined) throw this.#failure;
          return;
        }
        await new Promise<void>((resolve) => {
          reader.wake = resolve;
        });
        reader.wake = undefined;
      }
    } finally {
      this.#readers.delete(reader);
      if (this.#readers.size === 0) this.#onIdle?.();
    }
  }
}
