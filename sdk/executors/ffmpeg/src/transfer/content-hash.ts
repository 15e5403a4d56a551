/**
 * SHA-256 of what passes by, without slowing it down: a worker thread hashes what this thread hands it, while this thread, the disk and the socket go on.
 * Nothing is copied: shared memory is lent until it is hashed, other memory is given away. Small transfers are hashed in place, where starting a thread
 * would cost more than it saves.
 *
 * Giving memory away also spares this thread the collection of it: a stream of 64 KiB buffers makes the collector mark the whole heap of the executor again
 * and again (measured: 1.5 ms of processor time for each MiB, more than hashing it), the heap of the worker is nearly empty.
 *
 * The thread is started once per process, at the first large transfer, and does not keep the process alive. When it cannot be started or dies, hashing
 * fails with an error: a wrong digest is never given out.
 */
import { createHash, randomUUID } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { builtFile } from '../built-file.js';

/** From this size on the worker thread hashes. */
export const WORKER_FROM_BYTES = 8 << 20;
/** More pieces than this are made one first: each piece costs the threads about as much as copying some KiB. */
const MAX_PIECES = 80;

/** Pieces are hashed in the order of the calls. */
export interface ContentHash {
  /** Resolves when the pieces are hashed. Until then shared memory must stay as it is; other memory must not be used any more at all (it may be detached). */
  update(pieces: readonly Buffer[]): Promise<void>;
  /** Lower-case hex, after all updates. */
  digest(): Promise<string>;
  /** Gives up without a digest. */
  abandon(): void;
}

/** What the threads say to each other. */
export type HashOrder =
  | { kind: 'update'; stream: string; pieces: readonly Uint8Array[] }
  | { kind: 'digest'; stream: string }
  | { kind: 'abandon'; stream: string };
/** Orders of one stream are answered in their order; `hex` answers `digest`. */
export type HashAnswer = { kind: 'hashed'; stream: string } | { kind: 'digest'; stream: string; hex: string };

/** `expectedBytes` decides where the hashing is done; undefined counts as large. */
export function createContentHash(expectedBytes: number | undefined): ContentHash {
  return expectedBytes !== undefined && expectedBytes < WORKER_FROM_BYTES ? inPlace() : byWorker();
}

function inPlace(): ContentHash {
  const hash = createHash('sha256');
  return {
    async update(pieces) {
      for (const piece of pieces) hash.update(piece);
    },
    digest: async () => hash.digest('hex'),
    abandon: () => undefined,
  };
}

interface Waiting {
  resolve(answer: HashAnswer): void;
  reject(error: Error): void;
}

let worker: Worker | undefined;
const streams = new Map<string, Waiting[]>();

function byWorker(): ContentHash {
  worker ??= startWorker();
  const thread = worker;
  const stream = randomUUID();
  const waiting: Waiting[] = [];
  streams.set(stream, waiting);
  const ask = (order: HashOrder, given: ArrayBuffer[]): Promise<HashAnswer> =>
    new Promise((resolve, reject) => {
      // The thread died between two orders: nobody would ever answer.
      if (streams.get(stream) !== waiting) return reject(new Error('the hash thread has ended'));
      waiting.push({ resolve, reject });
      thread.postMessage(order, given);
    });
  return {
    async update(pieces) {
      const handed = handOver(pieces);
      await ask({ kind: 'update', stream, pieces: handed.pieces }, handed.given);
    },
    async digest() {
      const answer = await ask({ kind: 'digest', stream }, []);
      streams.delete(stream);
      if (answer.kind !== 'digest') throw new Error('the hash thread gave no digest');
      return answer.hex;
    },
    abandon() {
      streams.delete(stream);
      thread.postMessage({ kind: 'abandon', stream } satisfies HashOrder);
    },
  };
}

/** A piece that is only a part of its memory, as small buffers of the engine's pool are, is copied: giving it away would take the rest along. */
function handOver(pieces: readonly Buffer[]): { pieces: readonly Uint8Array[]; given: ArrayBuffer[] } {
  const few = pieces.length > MAX_PIECES ? [Buffer.concat(pieces)] : pieces;
  const given: ArrayBuffer[] = [];
  const handed = few.map((piece) => {
    if (piece.buffer instanceof SharedArrayBuffer) return piece;
    const whole = piece.byteLength === piece.buffer.byteLength ? piece : Uint8Array.from(piece);
    given.push(whole.buffer as ArrayBuffer);
    return whole;
  });
  return { pieces: handed, given };
}

function startWorker(): Worker {
  const thread = new Worker(builtFile('./hash-worker.js', import.meta.url), {
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: 32 },
  });
  thread.on('message', (answer: HashAnswer) => streams.get(answer.stream)?.shift()?.resolve(answer));
  const failed = (error: Error): void => {
    if (worker !== thread) return;
    worker = undefined;
    for (const waiting of streams.values()) for (const each of waiting.splice(0)) each.reject(error);
    streams.clear();
  };
  thread.on('error', failed);
  thread.on('exit', (code) => failed(new Error(`the hash thread ended (${code})`)));
  thread.unref();
  return thread;
}
