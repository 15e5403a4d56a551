/**
 * The arguments and results of every op (Remotion workspace ops; Media session ops). A runner does not check arguments with these: it passes them on
 * as text, and the executor that runs the op judges them. They serve the golden messages, the stand-in gateway and anyone who writes an executor.
 */
import { z } from 'zod';
import { count, positive, sha256Hex } from './fields.js';
import { MAX_INLINE_READ_BYTES } from './limits.js';
import type { JobType, MediaOp, Op, RemotionOp } from './names.js';

const path = z.string().min(1);
const url = z.url();
const encoding = z.enum(['utf8', 'base64']);
const inlineBytes = z.int().min(0).max(MAX_INLINE_READ_BYTES);
const stored = z.strictObject({ bytes: count, sha256: sha256Hex });
const nothing = z.strictObject({});
const argv = z.array(z.string());
const stderrTail = z.string();

/** One op: what its `args` and its `result` look like. */
export type OpShape = { readonly args: z.ZodType; readonly result: z.ZodType };

const stage: OpShape = {
  args: z.strictObject({ url, path, maxBytes: count, sha256: sha256Hex.optional() }),
  result: stored,
};
const publish: OpShape = {
  args: z.strictObject({ path, putUrl: url, maxBytes: count, contentType: z.string().min(1) }),
  result: stored,
};
const close: OpShape = { args: nothing, result: nothing };

const REMOTION_SHAPES: Readonly<Record<RemotionOp, OpShape>> = {
  writeFile: { args: z.strictObject({ path, content: z.string(), encoding }), result: stored },
  readFile: {
    args: z.strictObject({ path, maxBytes: inlineBytes }),
    result: z.strictObject({ content: z.string(), encoding, bytes: count, truncated: z.literal(false) }),
  },
  listFiles: {
    args: z.strictObject({ path: path.optional(), depth: count.optional() }),
    result: z.strictObject({ entries: z.array(z.strictObject({ path, kind: z.string(), bytes: count })) }),
  },
  deletePath: { args: z.strictObject({ path }), result: z.strictObject({ deleted: z.boolean() }) },
  exec: {
    args: z.strictObject({ command: z.string().min(1), args: argv, timeoutSec: positive }),
    result: z.strictObject({
      exitCode: z.int(),
      stdout: z.string(),
      stderr: z.string(),
      durationMs: count,
      truncated: z.boolean().optional(),
    }),
  },
  status: {
    args: nothing,
    result: z.strictObject({ workspaceReady: z.boolean(), diskUsedBytes: count, openProcesses: count }),
  },
  stage,
  publish,
  render: {
    args: z.strictObject({ compositionId: z.string().min(1), args: argv, putUrl: url, outputName: path }),
    result: z.strictObject({ bytes: count, sha256: sha256Hex, durationMs: count }),
  },
  hydrate: {
    args: z.strictObject({ manifest: z.array(z.strictObject({ path, sha256: sha256Hex, url })) }),
    result: z.strictObject({ restored: count, skipped: count }),
  },
  close,
};

const MEDIA_SHAPES: Readonly<Record<MediaOp, OpShape>> = {
  stage,
  ffmpeg: {
    args: z.strictObject({ argv, timeoutSec: positive }),
    result: z.strictObject({ exitCode: z.int(), stderrTail, durationMs: count }),
  },
  ffprobe: {
    args: z.strictObject({ argv }),
    result: z.strictObject({ exitCode: z.int(), stdout: z.string(), stderrTail }),
  },
  read: {
    args: z.strictObject({ path, maxBytes: inlineBytes }),
    result: z.strictObject({ content: z.string(), encoding, bytes: count }),
  },
  publish,
  stat: { args: z.strictObject({ path }), result: z.strictObject({ exists: z.boolean(), bytes: count }) },
  close,
};

/** The ops of each job type with the shapes of their arguments and results. */
export const OP_SHAPES: Readonly<Record<JobType, Readonly<Partial<Record<Op, OpShape>>>>> = {
  'remotion.workspace-session': REMOTION_SHAPES,
  'video.compile': MEDIA_SHAPES,
  'video.analyze.extract': MEDIA_SHAPES,
};
