/** Random ids, and the ids that are computed from other ids. */
import { randomBytes, randomInt } from 'node:crypto';
import { occurrenceJobId, submissionJobId } from '@reelhost/protocol';
import type { Entropy } from './core/index.js';

/** Random bytes are drawn in blocks: one call of the system per some hundred ids. */
const BLOCK_BYTES = 8192;
/** The random end of a job id, in bytes, and how many are drawn at once. */
const TAIL_BYTES = 7;
const TAILS = 1024;

/** Random bytes of the operating system, taken in blocks. */
export class SystemEntropy implements Entropy {
  #block: Buffer = Buffer.alloc(0);
  #at = 0;
  #tails = '';
  #tail = 0;
  #ms = 0;
  #time = '';
  #count = 0;

  /**
   * Ids rise with time, like those of UUID version 7: 48 bits of UTC ms, 24 bits of a counter, 56 random bits. So a new id goes to the end of the journal's
   * index; an entirely random one would dirty another page of it with every job.
   */
  jobId(): string {
    this.#count = (this.#count + 1) & 0xffffff;
    const now = Date.now();
    if (now !== this.#ms) {
      this.#ms = now;
      this.#time = now.toString(16).padStart(12, '0');
    }
    if (this.#tail === this.#tails.length) {
      this.#tails = randomBytes(TAIL_BYTES * TAILS).toString('hex');
      this.#tail = 0;
    }
    const tail = this.#tails.slice(this.#tail, this.#tail + 2 * TAIL_BYTES);
    this.#tail += tail.length;
    // The added digit makes the counter six long, and is cut off.
    return this.#time + (0x1000000 + this.#count).toString(16).slice(1) + tail;
  }

  submissionJobId(submissionId: string): string {
    return submissionJobId(submissionId);
  }

  occurrenceJobId(scheduleId: string, dueAt: number): string {
    return occurrenceJobId(scheduleId, dueAt);
  }

  token(): string {
    return this.#take(18).toString('base64url');
  }

  upTo(max: number): number {
    return max <= 0 ? 0 : randomInt(max + 1);
  }

  #take(bytes: number): Buffer {
    if (this.#at + bytes > this.#block.length) {
      this.#block = randomBytes(BLOCK_BYTES);
      this.#at = 0;
    }
    const taken = this.#block.subarray(this.#at, this.#at + bytes);
    this.#at += bytes;
    return taken;
  }
}
