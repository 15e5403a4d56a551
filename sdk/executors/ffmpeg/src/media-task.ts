/**
 * The handler of both media tasks: takes `{op, args, session}` as a job's args, finds the op, and runs it in the session's directory.
 * What an op throws becomes the op error of the remote protocol: TaskError codes are those of its table.
 */
import { TaskError } from '@reelhost/sdk';
import { z } from 'zod';
import { close, read, stat } from './ops/file-ops.js';
import { ffmpeg, ffprobe } from './ops/media-ops.js';
import { type Op, parseArgs, type Services } from './ops/op-run.js';
import { publish, stage } from './ops/transfer-ops.js';
import { checkSessionDir } from './session/session-path.js';

/** The ops of a media session ("Media session ops and argv validation"). */
export const MEDIA_OPS: Readonly<Record<string, Op>> = { stage, ffmpeg, ffprobe, read, publish, stat, close };
/** The ops that may simply be run again after an interruption. */
export const IDEMPOTENT_OPS = ['stat', 'read', 'ffprobe'] as const;

const jobArgs = z.object({
  op: z.string(),
  args: z.unknown().optional(),
  session: z.object({
    id: z.string().optional(),
    dir: z.string(),
    limits: z.object({ maxOutputBytes: z.number().positive().nullish() }).nullish(),
  }),
});

/** What the handler needs from the SDK's context. */
export interface MediaContext {
  signal: AbortSignal;
  progress(report: { stage: string; percent?: number; detail?: string }): void;
}

/** @throws TaskError; anything else an op throws is a bug and becomes `internal_error` without its message. */
export async function runMediaOp(
  args: unknown,
  context: MediaContext,
  services: Services,
): Promise<Record<string, unknown>> {
  const job = parseArgs(jobArgs, args);
  const op = Object.hasOwn(MEDIA_OPS, job.op) ? MEDIA_OPS[job.op] : undefined;
  if (op === undefined) throw new TaskError('unsupported_op', `"${job.op.slice(0, 64)}" is no op of a media session`);
  await checkSessionDir(job.session.dir);
  try {
    return await op(job.args, {
      sessionDir: job.session.dir,
      maxOutputBytes: job.session.limits?.maxOutputBytes ?? Number.POSITIVE_INFINITY,
      signal: context.signal,
      progress: (report) => context.progress(report),
      services,
    });
  } catch (error) {
    if (error instanceof TaskError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOSPC' || code === 'EDQUOT')
      throw new TaskError('disk_full', `no room left on the disk (${code})`, { retryable: true, cause: error });
    throw new TaskError('internal_error', `the op failed unexpectedly (${code ?? (error as Error).name})`, {
      retryable: true,
      cause: error,
    });
  }
}
