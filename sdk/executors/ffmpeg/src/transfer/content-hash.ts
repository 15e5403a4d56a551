/**
 * SHA-256 of what passes by, without slowing it down: blocks of large transfers are handed to a worker thread when this thread is through with them, and
 * come back when they are hashed. Measured on two cores: hashing in place costs a third of the throughput of an upload, the worker almost nothing; shared
 * memory instead of handing over was slower, because the engine copies into it word by word. Small transfers are hashed in place, where starting a thread
 * would cost more than it saves.
 *
 * The thread is started once per process, at the first large transfer, and does not keep the process alive. When it cannot be started or dies, hashing
 * fails with an error: a wrong digest is never given out.
 */
import { createHash, randomUUID } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { builtFile } from '../built-file.js';

/** From this size on the worker thread hashes. */
export const WORKER_FROM_BYTES = 8 << 20;
/** Size of a block. */
export const BLOCK_BYTES = 1 << 20;

/** Blocks are hashed in the order of the calls. */
export interface ContentHash {
  /** Takes the block away (it is detached) and resolves with it, or another of the same size, when it may be used again. */
  update(block: Buffer, length: number): Promise<Buffer>;
  /** Lower-case hex, after all updates. */
  digest(): Promise<string>;
  /** Gives up without a digest. */
  abandon(): void;
}

/** What the threads say to each other. */
export type HashOrder =
  | { kind: 'update'; stream: string; memory: ArrayBuffer; length: number }
  | { kind: 'digest'; stream: string }
  | { kind: 'abandon'; stream: string };
/** Orders of one stream are answered in their order; `hex` answers `digest`. */
export type HashAnswer =
  | { kind: 'hashed'; stream: string; memory: ArrayBuffer }
  | { kind: 'digest'; stream: string; hex: string };

/** `expectedBytes` decides where the hashing is done; undefined counts as large. */
export function createContentHash(expectedBytes: number | undefined): ContentHash {
  return expectedBytes !== undefined && expectedBytes < WORKER_FROM_BYTES ? inPlace() : byWorker();
}

function inPlace(): ContentHash {
  const hash = createHash('sha256');
  return {
    async update(block, length) {
      hash.update(block.subarray(0, length));
      return block;
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
  const ask = (order: HashOrder, handOver: ArrayBuffer[]): Promise<HashAnswer> =>
    new Promise((resolve, reject) => {
      waiting.push({ resolve, reject });
      thread.postMessage(order, handOver);
    });
  return {
    async update(block, length) {
      const memory = block.buffer as ArrayBuffer;
      const answer = await ask({ kind: 'update', stream, memory, length }, [memory]);
      return answer.kind === 'hashed' ? Buffer.from(answer.memory) : Buffer.allocUnsafeSlow(BLOCK_BYTES);
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
