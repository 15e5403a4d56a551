/** `stage` brings an object into the session, `publish` sends a file of it out. Both stream, hash in the same pass and report progress. */
import { TaskError } from '@reelhost/sdk';
import { z } from 'zod';
import { measure, reachableBytes } from '../session/disk-usage.js';
import { resolveFile, resolveTarget } from '../session/session-path.js';
import { download } from '../transfer/download.js';
import { TransferError } from '../transfer/transfer-error.js';
import { upload } from '../transfer/upload.js';
import { abortReason, type Op, type OpRun, parseArgs } from './op-run.js';

/** Progress of a transfer is reported this often at most. */
const REPORT_MS = 500;

const bytes = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER);
const stageArgs = z.object({
  url: z.string().min(1).max(16_384),
  path: z.string(),
  maxBytes: bytes.nullish(),
  sha256: z
    .string()
    .regex(/^[0-9a-fA-F]{64}$/, 'expected 64 hex digits')
    .nullish(),
});
const publishArgs = z.object({
  path: z.string(),
  putUrl: z.string().min(1).max(16_384),
  maxBytes: bytes.nullish(),
  contentType: z
    .string()
    .max(256)
    .regex(/^[\x20-\x7e]*$/, 'expected a media type')
    .nullish(),
});

/** {url, path, maxBytes, sha256?} → {bytes, sha256}. @throws TaskError file_too_large, stage_failed, disk_full, invalid_path. */
export const stage: Op = async (args, run) => {
  const { url, path, maxBytes, sha256 } = parseArgs(stageArgs, args);
  const target = await resolveTarget(run.sessionDir, path);
  const used = (await measure(run.sessionDir)).bytes - target.bytes;
  const reachable = await reachableBytes(run.sessionDir, run.services.sessionQuotaBytes, used);
  try {
    return {
      ...(await download(run.services.transport, {
        url,
        target: target.absolute,
        maxBytes: maxBytes ?? run.services.sessionQuotaBytes,
        roomBytes: Math.max(0, reachable - used),
        ...(sha256 == null ? {} : { sha256 }),
        signal: run.signal,
        onBytes: reporter('stage', run),
      })),
    };
  } catch (error) {
    throw opError(error, 'stage_failed', 'file_too_large', run);
  }
};

/** {path, putUrl, maxBytes, contentType} → {bytes, sha256}. @throws TaskError output_too_large, publish_failed, invalid_path. */
export const publish: Op = async (args, run) => {
  const { path, putUrl, maxBytes, contentType } = parseArgs(publishArgs, args);
  const source = await resolveFile(run.sessionDir, path);
  try {
    return {
      ...(await upload(run.services.transport, {
        url: putUrl,
        source: source.absolute,
        maxBytes: Math.min(maxBytes ?? Number.POSITIVE_INFINITY, run.maxOutputBytes, run.services.maxOutputBytes),
        ...(contentType == null || contentType === '' ? {} : { contentType }),
        signal: run.signal,
        onBytes: reporter('publish', run),
      })),
    };
  } catch (error) {
    throw opError(error, 'publish_failed', 'output_too_large', run);
  }
};

function opError(error: unknown, failed: string, tooLarge: string, run: OpRun): TaskError {
  if (run.signal.aborted) return abortReason(run.signal);
  if (!(error instanceof TransferError))
    return new TaskError(failed, 'the transfer failed unexpectedly', { cause: error });
  const details = error.detail === undefined ? {} : { details: { reason: error.detail } };
  switch (error.code) {
    case 'too_large':
      return new TaskError(tooLarge, error.message, { cause: error });
    case 'disk_full':
      return new TaskError('disk_full', error.message, { retryable: true, cause: error });
    case 'aborted':
      return abortReason(run.signal);
    case 'failed':
      return new TaskError(failed, error.message, { retryable: error.retryable, cause: error, ...details });
  }
}

function reporter(stageName: string, run: OpRun): (done: number, total: number | undefined) => void {
  const startedAt = performance.now();
  let last = startedAt;
  let highest = 0;
  return (done, total) => {
    const now = performance.now();
    if (now - last < REPORT_MS) return;
    last = now;
    const rate = done / 1e6 / ((now - startedAt) / 1000);
    if (total) highest = Math.max(highest, Math.min(99, Math.floor((done / total) * 100)));
    const detail = `${(done / 1e6).toFixed(1)} MB, ${rate.toFixed(1)} MB/s`;
    run.progress({ stage: stageName, ...(total ? { percent: highest } : {}), detail });
  };
}
