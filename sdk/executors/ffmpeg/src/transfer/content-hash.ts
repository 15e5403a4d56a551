/**
 * SHA-256 of what passes by, without slowing it down: large transfers are hashed by a worker thread from shared memory, while this thread moves the
 * same bytes between socket and disk. Measured on two cores: hashing in place costs a third of the throughput of an upload, the worker almost nothing.
 * Small ones are hashed in place, where starting a thread would cost more than it saves.
 *
 * The thread is started once per process, at the first large transfer, and does not keep the process alive. When it cannot be started or dies, hashing
 * fails with an error: a wrong digest is never given out.
 */
import { createHash, randomUUID } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { builtFile } from '../built-file.js';

/** From this size on the worker thread hashes. */
export const WORKER_FROM_BYTES = 8 << 20;
/** Size of a block of shared memory. */
export const BLOCK_BYTES = 1 << 20;

/** A piece of memory both threads see. */
export interface Block {
  readonly buffer: Buffer;
  readonly memory: SharedArrayBuffer;
}

/** Blocks are hashed in the order of the calls; a block must not change until its promise has resolved. */
export interface ContentHash {
  update(block: Block, length: number): Promise<void>;
  /** Lower-case hex, after all updates. */
  digest(): Promise<string>;
  /** Gives up without a digest. */
  abandon(): void;
}

/** What the threads say to each other. */
export type HashOrder =
  | { kind: 'update'; stream: string; memory: SharedArrayBuffer; length: number }
  | { kind: 'digest'; stream: string }
  | { kind: 'abandon'; stream: string };
/** Orders of one stream are answered in their order; `hex` answers `digest`. */
export interface HashAnswer {
  stream: string;
  hex?: string;
}

/** A new block. */
export function allocateBlock(): Block {
  const memory = new SharedArrayBuffer(BLOCK_BYTES);
  return { memory, buffer: Buffer.from(memory) };
}

/** `expectedBytes` decides where the hashing is done; undefined counts as large. */
export function createContentHash(expectedBytes: number | undefined): ContentHash {
  return expectedBytes !== undefined && expectedBytes < WORKER_FROM_BYTES ? inPlace() : byWorker();
}

function inPlace(): ContentHash {
  const hash = createHash('sha256');
  return {
    async update(block, length) {
      hash.update(block.buffer.subarray(0, length));
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
  const ask = (order: HashOrder): Promise<HashAnswer> =>
    new Promise((resolve, reject) => {
      waiting.push({ resolve, reject });
      thread.postMessage(order);
    });
  return {
    async update(block, length) {
      await ask({ kind: 'update', stream, memory: block.memory, length });
    },
    async digest() {
      const { hex } = await ask({ kind: 'digest', stream });
      streams.delete(stream);
      if (hex === undefined) throw new Error('the hash thread gave no digest');
      return hex;
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
  thread.on('message', ({ stream, hex }: HashAnswer) =>
    streams
      .get(stream)
      ?.shift()
      ?.resolve({ stream, ...(hex === undefined ? {} : { hex }) }),
  );
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
