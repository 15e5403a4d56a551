/**
 * What every op of a media session gets: its session, the services of the executor, and how to say no.
 */
import { TaskError } from '@reelhost/sdk';
import type { z } from 'zod';
import type { Programs } from '../probe/programs.js';
import type { Guardian } from '../process/guardian.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import type { Transport } from '../transfer/transport.js';

/** Shared by all ops of one executor process. */
export interface Services {
  programs: Programs;
  sandbox: Sandbox;
  transport: Transport;
  guardian: Guardian;
  /** A marker for the next child, see process/marker.ts. */
  nextMarker(): string;
  /** The whole environment of a child. */
  environment: Readonly<Record<string, string>>;
  /** Largest single object or file, bytes. */
  maxOutputBytes: number;
  /** Largest sum of all files of a session, bytes. */
  sessionQuotaBytes: number;
  /** A program could not be started any more: the capability is to be withdrawn. */
  programLost(program: 'ffmpeg' | 'ffprobe', message: string): void;
}

/** One op: its session, its limits, and where progress goes. */
export interface OpRun {
  sessionDir: string;
  /** The job's own caps from `limits`, bytes. */
  maxOutputBytes: number;
  signal: AbortSignal;
  progress(report: { stage: string; percent?: number; detail?: string }): void;
  services: Services;
}

/** An op takes its args and answers its result object. @throws TaskError with an op error code. */
export type Op = (args: unknown, run: OpRun) => Promise<Record<string, unknown>>;

/** Largest inline answer of `read` and `ffprobe`, bytes (the remote payload limit). */
export const MAX_INLINE_BYTES = 4_194_304;
/** What the envelope around an inline answer may need: ids, the job token, the end of the log. */
export const ENVELOPE_BYTES = 24 * 1024;

/** @throws TaskError `invalid_args` naming the first field that is wrong. */
export function parseArgs<T extends z.ZodType>(schema: T, args: unknown): z.infer<T> {
  const parsed = schema.safeParse(args ?? {});
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const field = issue?.path.join('.') ?? '';
  throw new TaskError('invalid_args', `${field === '' ? 'args' : `args.${field}`}: ${issue?.message ?? 'invalid'}`);
}

/** The reason an aborted signal carries, as the error of the op. */
export function abortReason(signal: AbortSignal): TaskError {
  return signal.reason instanceof TaskError ? signal.reason : new TaskError('cancelled', 'the op was cancelled');
}
