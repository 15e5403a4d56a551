/**
 * Sends one file of the session to a presigned PUT URL.
 *
 * One plain PUT with an exact Content-Length and the given Content-Type: no chunked encoding, no Expect, no header that was not signed. Every try
 * opens the file anew. The last piece is held back until the file has been looked at again, so that a file that changed while it was sent never
 * becomes an object: the request is broken off instead. Hash and count are taken in the same pass.
 */
import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { BlockPool } from './block-pool.js';
import { BLOCK_BYTES, type ContentHash, createContentHash } from './content-hash.js';
import type { TransferResult } from './download.js';
import { refusal, systemClock, type TransferClock, withTries } from './exchange.js';
import { asTransferError, TransferError } from './transfer-error.js';
import { parseObjectUrl, type Transport } from './transport.js';

/** How long a broken request may still bring an answer that explains it. */
const EXPLAIN_MS = 1_000;

/** What to send and where to. */
export interface UploadRequest {
  url: string;
  /** Absolute path of a regular file in the session; a symlink in its place is refused. */
  source: string;
  maxBytes: number;
  contentType?: string;
  signal: AbortSignal;
  onBytes?: (done: number, total: number) => void;
  clock?: TransferClock;
}

/** @throws TransferError: `too_large` before the first byte is sent. */
export async function upload(transport: Transport, request: UploadRequest): Promise<TransferResult> {
  const url = parseObjectUrl(request.url);
  const clock = request.clock ?? systemClock;
  return withTries(url, request.signal, clock, async () => {
    const file = await open(request.source, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      return await send(transport, url, file, request, clock);
    } catch (error) {
      throw asTransferError(error, url);
    } finally {
      await file.close().catch(() => undefined);
    }
  });
}

async function send(
  transport: Transport,
  url: URL,
  file: FileHandle,
  request: UploadRequest,
  clock: TransferClock,
): Promise<TransferResult> {
  const before = await file.stat({ bigint: true });
  if (!before.isFile()) throw new TransferError('failed', 'only regular files are published');
  const size = Number(before.size);
  if (size > request.maxBytes) {
    throw new TransferError('too_large', `the file has ${size} bytes, more than the allowed ${request.maxBytes}`);
  }
  const headers: Record<string, string | number> = { 'content-length': size };
  if (request.contentType !== undefined) headers['content-type'] = request.contentType;
  const sent = transport.request(url, { method: 'PUT', headers, signal: request.signal });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    sent.once('response', resolve);
    sent.on('error', reject);
  });
  answered.catch(() => undefined);

  const hash = createContentHash(size);
  try {
    await writeBody(sent, file, before, hash, (done) => request.onBytes?.(done, size));
  } catch (error) {
    hash.abandon();
    // The store may have answered before it read everything, and closed: that answer explains the broken pipe.
    const early =
      error instanceof TransferError
        ? undefined
        : await Promise.race([answered.catch(() => undefined), pause(EXPLAIN_MS)]);
    const why = early?.statusCode !== undefined && early.statusCode >= 300 ? await refusal(url, early, clock) : error;
    sent.destroy();
    throw why;
  }
  const sha256 = await hash.digest();
  const response = await answered;
  if (response.statusCode === undefined || response.statusCode < 200 || response.statusCode >= 300) {
    throw await refusal(url, response, clock);
  }
  response.resume();
  return { bytes: size, sha256 };
}

async function writeBody(
  sent: ClientRequest,
  file: FileHandle,
  before: BigIntStats,
  hash: ContentHash,
  onBytes: (done: number) => void,
): Promise<void> {
  const size = Number(before.size);
  const pool = new BlockPool();
  let stopped: Error | undefined;
  let halt: (error: Error) => void = () => undefined;
  const halted = new Promise<never>((_resolve, reject) => {
    halt = (error) => {
      stopped ??= error;
      reject(error);
    };
  });
  halted.catch(() => undefined);
  let allSent = false;
  sent.on('error', halt);
  sent.once('response', () => {
    if (!allSent) halt(Object.assign(new Error('answered early'), { code: 'EARLY' }));
  });

  const fill = async (at: number): Promise<Piece> => {
    const block = await Promise.race([pool.take(), halted]);
    const length = Math.min(BLOCK_BYTES, size - at);
    for (let have = 0; have < length; ) {
      const { bytesRead } = await file.read(block, have, length - have, at + have);
      if (bytesRead === 0) throw changed('became shorter');
      have += bytesRead;
    }
    return { block, length };
  };
  // The next piece is read while the socket and the hash take the one before; a block comes back when both are through with it.
  let done = 0;
  let hashing: Promise<void> | undefined;
  let next = size > 0 ? fill(0) : undefined;
  while (next !== undefined) {
    const { block, length } = await next;
    done += length;
    next = done < size ? fill(done) : undefined;
    next?.catch(() => undefined);
    onBytes(done);
    if (next === undefined) await assertUnchanged(file, before);
    if (stopped) throw stopped;
    allSent = next === undefined;
    const taken = new Promise<void>((resolve) => sent.write(block.subarray(0, length), () => resolve()));
    // In order: the socket takes pieces one after the other.
    hashing = taken.then(() => hash.update(block, length)).then((free) => pool.give(free));
    hashing.catch(halt);
  }
  if (size === 0) await assertUnchanged(file, before);
  allSent = true;
  sent.end();
  // A request that never got a socket never calls back: its error ends the wait.
  await Promise.race([hashing, halted]);
}

interface Piece {
  block: Buffer;
  length: number;
}

async function assertUnchanged(file: FileHandle, before: BigIntStats): Promise<void> {
  const now = await file.stat({ bigint: true });
  if (now.size !== before.size || now.mtimeNs !== before.mtimeNs) throw changed('changed');
}

function changed(how: string): TransferError {
  return new TransferError('failed', `the file ${how} while it was sent; nothing was stored`, {
    retryable: true,
    detail: 'changed',
  });
}

function pause(ms: number): Promise<undefined> {
  return new Promise((resolve) => setTimeout(resolve, ms, undefined).unref());
}
