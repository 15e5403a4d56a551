/**
 * Brings one object from a presigned GET URL into a file of the session.
 *
 * Order of events: request → status judged → declared length against the limit → body written to a temporary name beside the target, hashed and
 * counted in the same pass → length and digest checked → rename. The target exists only when it is whole; the temporary file never survives.
 * Memory is constant: a few blocks of a MiB. Nothing is flushed to the platter: a session directory does not outlive a crash of the host, and waiting for the
 * disk halved the throughput.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, rename, unlink } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { BlockPool } from './block-pool.js';
import { BLOCK_BYTES, type ContentHash, createContentHash } from './content-hash.js';
import { refusal, systemClock, type TransferClock, withTries } from './exchange.js';
import { asTransferError, redactUrl, TransferError } from './transfer-error.js';
import { parseObjectUrl, type Transport } from './transport.js';

/** What to fetch and where to. */
export interface DownloadRequest {
  url: string;
  /** Absolute path of the target; its folder exists and lies in the session. */
  target: string;
  /** Largest object that is accepted; more is `too_large`. */
  maxBytes: number;
  /** What the disk quota leaves; more is `disk_full`. */
  roomBytes?: number;
  /** Lower-case hex; another digest is an error. */
  sha256?: string;
  signal: AbortSignal;
  onBytes?: (done: number, total: number | undefined) => void;
  clock?: TransferClock;
}

/** What arrived. */
export interface TransferResult {
  bytes: number;
  sha256: string;
}

/** @throws TransferError; nothing is left on the disk then. */
export async function download(transport: Transport, request: DownloadRequest): Promise<TransferResult> {
  const url = parseObjectUrl(request.url);
  const clock = request.clock ?? systemClock;
  const partial = join(dirname(request.target), `.part-${randomBytes(9).toString('hex')}`);
  return withTries(url, request.signal, clock, async () => {
    const response = await answer(transport, url, request.signal);
    if (response.statusCode !== 200) throw await refusal(url, response, clock);
    try {
      return await receive(url, response, partial, request);
    } catch (error) {
      response.destroy();
      await unlink(partial).catch(() => undefined);
      throw error;
    }
  });
}

async function answer(transport: Transport, url: URL, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = transport.request(url, { method: 'GET', signal });
    sent.once('response', resolve);
    sent.on('error', reject);
    sent.end();
  });
}

async function receive(
  url: URL,
  response: IncomingMessage,
  partial: string,
  request: DownloadRequest,
): Promise<TransferResult> {
  const declared = declaredLength(response);
  const room = request.roomBytes ?? Number.POSITIVE_INFINITY;
  if (declared !== undefined) checkSize(declared, request.maxBytes, room);
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const file = await open(partial, flags, 0o600);
  const hash = createContentHash(declared);
  let digested = false;
  try {
    const sink = new BlockSink(file, hash, (bytes) => {
      checkSize(bytes, request.maxBytes, room);
      request.onBytes?.(bytes, declared);
    });
    await pipeline(response, sink, { signal: request.signal });
    if (declared !== undefined && sink.bytes !== declared) {
      throw new TransferError('failed', `the body of ${redactUrl(url)} was cut off`, { again: true });
    }
    const sha256 = await hash.digest();
    digested = true;
    if (request.sha256 !== undefined && request.sha256.toLowerCase() !== sha256) {
      throw new TransferError('failed', `${redactUrl(url)} has the digest ${sha256}, expected ${request.sha256}`, {
        detail: 'digest',
      });
    }
    await rename(partial, request.target);
    return { bytes: sink.bytes, sha256 };
  } catch (error) {
    throw asTransferError(error, url);
  } finally {
    if (!digested) hash.abandon();
    await file.close().catch(() => undefined);
  }
}

function declaredLength(response: IncomingMessage): number | undefined {
  const text = response.headers['content-length'];
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

function checkSize(bytes: number, maxBytes: number, room: number): void {
  if (bytes > maxBytes) throw new TransferError('too_large', `the object has more than the allowed ${maxBytes} bytes`);
  if (bytes > room)
    throw new TransferError('disk_full', `the session's disk quota has only ${Math.max(0, room)} bytes left`);
}

/** Collects what it gets into blocks; each goes to the disk, then to the hash, and comes back to be filled again. */
class BlockSink extends Writable {
  readonly #pool = new BlockPool();
  readonly #hashing = new Set<Promise<void>>();
  #order: Promise<unknown> = Promise.resolve();
  #block: Buffer | undefined;
  #filled = 0;
  /** Bytes taken in so far. */
  bytes = 0;

  constructor(
    private readonly file: FileHandle,
    private readonly hash: ContentHash,
    private readonly onBytes: (bytes: number) => void,
  ) {
    super({ highWaterMark: BLOCK_BYTES });
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    try {
      this.onBytes(this.bytes + chunk.length);
    } catch (error) {
      done(error as Error);
      return;
    }
    this.#fill(chunk, 0, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#flush();
    this.#order.then(() => Promise.all(this.#hashing)).then(() => done(), done);
  }

  #fill(chunk: Buffer, from: number, done: (error?: Error | null) => void): void {
    let at = from;
    while (at < chunk.length) {
      this.#block ??= this.#pool.tryTake();
      if (this.#block === undefined) {
        void this.#pool.take().then((block) => {
          this.#block = block;
          this.#fill(chunk, at, done);
        });
        return;
      }
      const copied = chunk.copy(this.#block, this.#filled, at);
      at += copied;
      this.#filled += copied;
      this.bytes += copied;
      if (this.#filled === BLOCK_BYTES) this.#flush();
    }
    done();
  }

  #flush(): void {
    const block = this.#block;
    if (block === undefined || this.#filled === 0) return;
    const length = this.#filled;
    const stored = this.#store(block, length, this.bytes - length);
    // Blocks may reach the disk in any order, the hash takes them in theirs.
    this.#order = Promise.all([this.#order, stored]).then(() => {
      const hashed = this.hash.update(block, length).then((free) => {
        this.#hashing.delete(hashed);
        this.#pool.give(free);
      });
      hashed.catch((error: Error) => this.destroy(error));
      this.#hashing.add(hashed);
    });
    this.#order.catch((error: Error) => this.destroy(error));
    this.#block = undefined;
    this.#filled = 0;
  }

  async #store(block: Buffer, length: number, position: number): Promise<void> {
    // A short write happens when the disk is nearly full: the rest either goes in or says ENOSPC.
    for (let at = 0; at < length; ) at += (await this.file.write(block, at, length - at, position + at)).bytesWritten;
  }
}
