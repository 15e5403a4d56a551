/**
 * Deadlines in buckets. A job that ends in time takes its deadline back in O(1), so 20,000 jobs a second with a 30 s limit leave
 * nothing behind; only the numbers of buckets are kept in a heap. Precision is one bucket, rounded up: never early.
 * Buckets whose items were all taken back are cleared away when they are more than half, so that far deadlines do not pile up.
 */

/** Fewer empty buckets than this are not worth the work. */
const EMPTY_BUCKETS = 4096;

/** Deadlines of one clock, in its milliseconds. */
export class Deadlines<Item> {
  readonly #bucketMs: number;
  readonly #buckets = new Map<number, Set<Item>>();
  #heap: number[] = [];
  #empty = 0;

  constructor(bucketMs = 10) {
    this.#bucketMs = bucketMs;
  }

  /** Plans an item for `at` (ms); returns the bucket that {@link cancel} needs. */
  add(at: number, item: Item): number {
    const bucket = Math.max(0, Math.ceil(at / this.#bucketMs));
    const items = this.#buckets.get(bucket);
    if (items !== undefined) {
      if (items.size === 0) this.#empty--;
      items.add(item);
    } else {
      this.#buckets.set(bucket, new Set([item]));
      push(this.#heap, bucket);
    }
    return bucket;
  }

  cancel(bucket: number, item: Item): void {
    const items = this.#buckets.get(bucket);
    if (items?.delete(item) !== true || items.size > 0) return;
    this.#empty++;
    if (this.#empty > EMPTY_BUCKETS && this.#empty * 2 > this.#buckets.size) this.#clear();
  }

  /** How many buckets there are, empty ones included. */
  get buckets(): number {
    return this.#buckets.size;
  }

  #clear(): void {
    for (const [bucket, items] of this.#buckets) if (items.size === 0) this.#buckets.delete(bucket);
    // A sorted array is a heap.
    this.#heap = [...this.#buckets.keys()].sort((a, b) => a - b);
    this.#empty = 0;
  }

  /** Earliest moment (ms) at which something is due, or null. */
  next(): number | null {
    for (;;) {
      const bucket = this.#heap[0];
      if (bucket === undefined) return null;
      const items = this.#buckets.get(bucket);
      if (items !== undefined && items.size > 0) return bucket * this.#bucketMs;
      if (this.#buckets.delete(bucket)) this.#empty--;
      pop(this.#heap);
    }
  }

  /** Takes out everything due at `now`, earliest bucket first, in the order it was added. */
  take(now: number): Item[] {
    const due: Item[] = [];
    for (let at = this.next(); at !== null && at <= now; at = this.next()) {
      const bucket = pop(this.#heap);
      if (bucket === undefined) break;
      for (const item of this.#buckets.get(bucket) ?? []) due.push(item);
      this.#buckets.delete(bucket);
    }
    return due;
  }
}

function push(heap: number[], value: number): void {
  let at = heap.push(value) - 1;
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const above = heap[parent] as number;
    if (above <= value) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = value;
}

function pop(heap: number[]): number | undefined {
  const top = heap[0];
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return top;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && (heap[child + 1] as number) < (heap[child] as number)) child++;
    const below = heap[child] as number;
    if (below >= last) break;
    heap[at] = below;
    at = child;
  }
  heap[at] = last;
  return top;
}
