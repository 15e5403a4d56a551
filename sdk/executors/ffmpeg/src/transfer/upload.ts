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
import { type ContentHash, createContentHash } from './content-hash.js';
import type { TransferResult } from './download.js';
import { refusal, systemClock, type TransferClock, withTries } from './exchange.js';
import { asTransferError, TransferError } from './transfer-error.js';
import { parseObjectUrl, type Transport } from './transport.js';

/** What is read, sent and hashed at once. Each hand-over wakes threads: 4 MiB need a seventh less processor time than 1 MiB, 8 MiB no less than 4. */
const BLOCK_BYTES = 4 << 20;
/** Blocks per upload: one is read while the socket and the hash take the others. */
const BLOCKS = 3;
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

  // A block is read anew when the socket and the hash are through with it; meanwhile the others are on their way.
  const blocks = idleBlocks.pop() ?? Array.from({ length: BLOCKS }, newBlock);
  for (let at = 0, turn = 0; at < size; turn += 1) {
    const block = blocks[turn % blocks.length] as Block;
    await Promise.race([block.free, halted]);
    const piece = block.memory.subarray(0, Math.min(BLOCK_BYTES, size - at));
    await readFully(file, piece, at);
    at += piece.length;
    onBytes(at);
    if (at === size) await assertUnchanged(file, before);
    if (stopped) throw stopped;
    allSent = at === size;
    const taken = new Promise<void>((resolve) => sent.write(piece, () => resolve()));
    block.free = Promise.all([taken, hash.update([piece])]);
    block.free.catch(halt);
  }
  if (size === 0) await assertUnchanged(file, before);
  allSent = true;
  sent.end();
  // A request that never got a socket never calls back: its error ends the wait.
  await Promise.race([Promise.all(blocks.map(({ free }) => free)), halted]);
  idleBlocks.push(blocks);
}

/** Memory that the socket and the hash thread may read at the same time; `free` tells when both have. */
interface Block {
  memory: Buffer;
  free: Promise<unknown>;
}

/** Of finished uploads, for the next ones: the collector does not count shared memory, and would let it pile up. As many sets as uploads ran at once. */
const idleBlocks: Block[][] = [];

function newBlock(): Block {
  return { memory: Buffer.from(new SharedArrayBuffer(BLOCK_BYTES)), free: Promise.resolve() };
}

async function readFully(file: FileHandle, piece: Buffer, from: number): Promise<void> {
  for (let have = 0; have < piece.length; ) {
    const { bytesRead } = await file.read(piece, have, piece.length - have, from + have);
    if (bytesRead === 0) throw changed('became shorter');
    have += bytesRead;
  }
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
