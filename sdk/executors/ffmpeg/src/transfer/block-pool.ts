/** A few blocks of memory that go round between socket, disk and hash: what bounds the memory of a transfer. */
import { BLOCK_BYTES } from './content-hash.js';

/** Blocks per transfer: one being filled, the others on their way. */
const BLOCKS = 6;

/** Hands out at most BLOCKS blocks at a time. */
export class BlockPool {
  readonly #free: Buffer[] = [];
  readonly #waiting: ((block: Buffer) => void)[] = [];
  #made = 0;

  /** A free block, at once or when one is given back. */
  take(): Promise<Buffer> {
    const block = this.tryTake();
    return block === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(block);
  }

  tryTake(): Buffer | undefined {
    const block = this.#free.pop();
    if (block !== undefined) return block;
    if (this.#made === BLOCKS) return undefined;
    this.#made += 1;
    return Buffer.allocUnsafeSlow(BLOCK_BYTES);
  }

  give(block: Buffer): void {
    const next = this.#waiting.shift();
    if (next) next(block);
    else this.#free.push(block);
  }
}
