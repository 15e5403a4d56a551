/**
 * A file that only takes space. When the disk is full it is given up, so that what must be written (results of running jobs, the clean-up itself)
 * can be; when space returns it is made again, and only then new work is taken.
 */
import { closeSync, fsyncSync, openSync, renameSync, statfsSync, statSync, unlinkSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

const BLOCK_BYTES = 1_048_576;

/** The file that takes space, given up or not. */
export class SpaceReserve {
  readonly #path: string;
  readonly #bytes: number;
  /** Free space beyond the reserve below which new work would only fill the disk again. */
  readonly #marginBytes: number;
  /** Why it could not be made, when that was not for lack of space. */
  trouble: string | null = null;

  constructor(path: string, bytes: number, marginBytes: number) {
    this.#path = path;
    this.#bytes = bytes;
    this.#marginBytes = marginBytes;
  }

  get held(): boolean {
    return statSync(this.#path, { throwIfNoEntry: false })?.size === this.#bytes;
  }

  /** Gives the space up. True when there was some. */
  release(): boolean {
    const held = (statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0) > 0;
    remove(this.#path);
    return held;
  }

  /** Bytes missing until the reserve can be held with its margin; 0 when it can, or is. */
  missingBytes(): number {
    const { bavail, bsize } = statfsSync(dirname(this.#path));
    const wanted = this.#marginBytes + (this.held ? 0 : this.#bytes);
    return Math.max(0, wanted - bavail * bsize);
  }

  /** Makes the reserve if there is room for it and the margin. True when it is held afterwards. */
  take(): boolean {
    if (this.held) return true;
    if (this.missingBytes() > 0) return false;
    const draft = `${this.#path}.new`;
    try {
      const file = openSync(draft, 'w', 0o600);
      try {
        const block = Buffer.alloc(BLOCK_BYTES);
        for (let left = this.#bytes; left > 0; left -= writeSync(file, block, 0, Math.min(left, BLOCK_BYTES)));
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      renameSync(draft, this.#path);
      this.trouble = null;
      return true;
    } catch (error) {
      remove(draft);
      const { code, message } = error as NodeJS.ErrnoException;
      this.trouble = code === 'ENOSPC' || code === 'EDQUOT' ? null : message;
      return false;
    }
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It was not there.
  }
}
