/**
 * Brings one object from a presigned GET URL into a file of the session.
 *
 * Order of events: request → status judged → declared length against the limit → body written to a temporary name beside the target, hashed and
 * counted in the same pass → length and digest checked → rename. The target exists only when it is whole; the temporary file never survives.
 * Memory is constant: a few MiB. Nothing is flushed to the platter: a session directory does not outlive a crash of the host, and waiting for the
 * disk halved the throughput.
 */
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, open, rename, unlink } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type ContentHash, createContentHash } from './content-hash.js';
import { refusal, systemClock, type TransferClock, withTries } from './exchange.js';
import { asTransferError, redactUrl, TransferError } from './transfer-error.js';
import { parseObjectUrl, type Transport } from './transport.js';

/** So much may wait for the disk, which gets it in one write. */
const BATCH_BYTES = 1 << 20;
/** So many writes may wait for the hash. */
const MAX_UNHASHED = 4;

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
    const sink = new HashedFile(file, hash, (bytes) => {
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

/** Writes what it gets to the disk, several pieces at a time, and then gives the memory to the hash. */
class HashedFile extends Writable {
  readonly #hashing: Promise<void>[] = [];
  /** Bytes taken in so far. */
  bytes = 0;

  constructor(
    private readonly file: FileHandle,
    private readonly hash: ContentHash,
    private readonly onBytes: (bytes: number) => void,
  ) {
    super({ highWaterMark: BATCH_BYTES });
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#take([chunk]).then(() => done(), done);
  }

  override _writev(items: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#take(items.map(({ chunk }) => chunk)).then(() => done(), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    Promise.all(this.#hashing).then(() => done(), done);
  }

  async #take(pieces: Buffer[]): Promise<void> {
    const from = this.bytes;
    for (const piece of pieces) this.bytes += piece.length;
    this.onBytes(this.bytes);
    await this.#store(pieces, from);
    const hashed = this.hash.update(pieces);
    hashed.catch(() => undefined);
    this.#hashing.push(hashed);
    if (this.#hashing.length > MAX_UNHASHED) await this.#hashing.shift();
  }

  async #store(pieces: readonly Buffer[], from: number): Promise<void> {
    let left = pieces;
    for (let at = from; at < this.bytes; ) {
      const { bytesWritten } = await this.file.writev(left, at);
      at += bytesWritten;
      // A short write happens when the disk is nearly full: the rest either goes in or says ENOSPC.
      if (at < this.bytes) left = [Buffer.concat(left).subarray(bytesWritten)];
    }
  }
}
