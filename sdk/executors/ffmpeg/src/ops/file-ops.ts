/** The ops that look at files of the session: `read`, `stat`, and `close`, which removes them all. */
import { constants } from 'node:fs';
import { open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { TaskError } from '@reelhost/sdk';
import { z } from 'zod';
import { resolveFile, resolveSessionPath } from '../session/session-path.js';
import { ENVELOPE_BYTES, MAX_INLINE_BYTES, type Op, parseArgs } from './op-run.js';

const readArgs = z.object({ path: z.string(), maxBytes: z.number().int().nonnegative().nullish() });
const statArgs = z.object({ path: z.string() });

/**
 * {path, maxBytes} → {content, encoding, bytes}. `utf8` when the bytes are valid UTF-8, else `base64`.
 * @throws TaskError file_too_large when the file, or the answer as JSON, is larger than allowed: never a silent short read.
 */
export const read: Op = async (args, run) => {
  const { path, maxBytes } = parseArgs(readArgs, args);
  const limit = Math.min(maxBytes ?? MAX_INLINE_BYTES, MAX_INLINE_BYTES);
  const source = await resolveFile(run.sessionDir, path);
  const content = await readWhole(source.absolute, limit);
  const text = asUtf8(content);
  const answer =
    text === undefined
      ? { content: content.toString('base64'), encoding: 'base64' }
      : { content: text, encoding: 'utf8' };
  if (Buffer.byteLength(JSON.stringify(answer.content)) > MAX_INLINE_BYTES - ENVELOPE_BYTES) {
    throw new TaskError(
      'file_too_large',
      `as ${answer.encoding} the file does not fit into an inline answer of ${MAX_INLINE_BYTES} bytes`,
    );
  }
  return { ...answer, bytes: content.length };
};

/** {path} → {exists, bytes}; a folder exists with 0 bytes. @throws TaskError invalid_path. */
export const stat: Op = async (args, run) => {
  const { path } = parseArgs(statArgs, args);
  const seen = await resolveSessionPath(run.sessionDir, path);
  return { exists: seen.kind !== 'missing', bytes: seen.bytes };
};

/** {} → {}. Removes everything in the session directory; the directory itself belongs to the host. */
export const close: Op = async (_args, run) => {
  for (const name of await readdir(run.sessionDir).catch(() => [])) {
    await rm(join(run.sessionDir, name), { recursive: true, force: true, maxRetries: 3 });
  }
  return {};
};

async function readWhole(path: string, limit: number): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const seen = await file.stat();
    if (!seen.isFile()) throw new TaskError('invalid_path', 'only regular files are read');
    if (seen.size > limit)
      throw new TaskError('file_too_large', `the file has ${seen.size} bytes, more than the allowed ${limit}`);
    const content = Buffer.alloc(seen.size);
    let have = 0;
    while (have < content.length) {
      const { bytesRead } = await file.read(content, have, content.length - have, have);
      if (bytesRead === 0) break;
      have += bytesRead;
    }
    return content.subarray(0, have);
  } finally {
    await file.close();
  }
}

function asUtf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
