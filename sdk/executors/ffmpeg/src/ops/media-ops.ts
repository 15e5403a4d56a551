/**
 * `ffmpeg` and `ffprobe`: the argv is validated, rebuilt, and run in the session directory behind the sandbox.
 *
 * Order of events: args → validator (files are looked at now, not when they were staged) → room on the disk → run, with the quota watched → outcome.
 * A program that ends with an exit code is a result, whatever the code; an error is what stopped it from running to its own end, or a full disk.
 */
import { constants } from 'node:fs';
import { access, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { TaskError, Workspace } from '@reelhost/sdk';
import { z } from 'zod';
import { checkArgv } from '../core/argv/check.js';
import { durationFromArgv, durationFromInputs, InputDurations } from '../core/duration.js';
import { alignEnd, alignStart, HeadBuffer, relativePaths, TailBuffer } from '../core/output-tail.js';
import { ProgressMeter, ProgressParser } from '../core/progress.js';
import { type ChildOutcome, runChild } from '../process/child.js';
import { withFileLimit } from '../sandbox/file-limit.js';
import { findBreach, measure, type QuotaBreach, reachableBytes, watchQuota } from '../session/disk-usage.js';
import { sessionFiles } from '../session-files.js';
import {
  abortReason,
  ENVELOPE_BYTES,
  MAX_INLINE_BYTES,
  type Op,
  type OpRun,
  parseArgs,
  type Services,
} from './op-run.js';

/** How much of the log's end an answer carries, bytes. */
export const STDERR_TAIL_BYTES = 64 * 1024;
/** At most this many progress messages a second. */
const REPORT_MS = 250;
const MAX_TIMEOUT_SEC = 86_400;

const mediaArgs = z.object({
  argv: z.array(z.string()),
  timeoutSec: z.number().positive().max(MAX_TIMEOUT_SEC).nullish(),
});

/** {argv, timeoutSec} → {exitCode, stderrTail, durationMs}. @throws TaskError argv_not_allowed, timeout, cancelled, disk_full, output_too_large. */
export const ffmpeg: Op = async (args, run) => {
  const { argv, timeoutSec } = parseArgs(mediaArgs, args);
  const checked = validate('ffmpeg', argv, run);
  // ffmpeg makes no folders; frames/%04d.png is meant to work in a fresh session all the same.
  for (const folder of checked.missingFolders) await new Workspace(run.sessionDir).folder(folder);
  const meter = new ProgressMeter('ffmpeg', checked.expectedDurationUs ?? durationFromArgv(argv));
  const parser = new ProgressParser();
  const inputs = new InputDurations();
  const tail = new TailBuffer(STDERR_TAIL_BYTES);
  let lastReport = Number.NEGATIVE_INFINITY;

  const outcome = await runProgram('ffmpeg', checked.rebuild({ progress: true }), timeoutSec, run, {
    onStdout(chunk) {
      for (const block of parser.feed(chunk.toString('latin1'))) {
        const now = performance.now();
        if (now - lastReport < REPORT_MS && !block.ended) continue;
        lastReport = now;
        run.progress(meter.report(block));
      }
    },
    onStderr(chunk) {
      tail.feed(chunk);
      if (inputs.feed(chunk.toString('latin1'))) {
        const length = durationFromInputs(argv, inputs.found);
        if (length !== undefined) meter.learnDuration(length);
      }
    },
  });
  const stderrTail = tailText(tail, run);
  if (outcome.exitCode === 0) run.progress(meter.finished());
  else if (isDiskFull(outcome.exitCode, stderrTail)) {
    throw new TaskError('disk_full', 'ffmpeg found no room left on the disk', {
      retryable: true,
      details: { stderrTail: stderrTail.slice(-2000) },
    });
  }
  return { exitCode: outcome.exitCode, stderrTail, durationMs: outcome.durationMs };
};

/** {argv, timeoutSec} → {exitCode, stdout, stderrTail}, and `truncated: true` when stdout was cut. */
export const ffprobe: Op = async (args, run) => {
  const { argv, timeoutSec } = parseArgs(mediaArgs, args);
  const checked = validate('ffprobe', argv, run);
  const head = new HeadBuffer(MAX_INLINE_BYTES);
  const tail = new TailBuffer(STDERR_TAIL_BYTES);
  const outcome = await runProgram('ffprobe', checked.rebuild(), timeoutSec, run, {
    onStdout: (chunk) => head.feed(chunk),
    onStderr: (chunk) => tail.feed(chunk),
  });
  const printed = head.truncated ? alignEnd(head.bytes()) : head.bytes();
  const whole = relativePaths(Buffer.from(printed).toString('utf8'), run.services.sandbox.roots(run.sessionDir));
  const stdout = fitJson(whole, MAX_INLINE_BYTES - ENVELOPE_BYTES - STDERR_TAIL_BYTES * 6);
  const truncated = head.truncated || stdout.length < whole.length;
  return {
    exitCode: outcome.exitCode,
    stdout,
    stderrTail: tailText(tail, run),
    ...(truncated ? { truncated: true } : {}),
  };
};

function validate(tool: 'ffmpeg' | 'ffprobe', argv: string[], run: OpRun) {
  const verdict = checkArgv({
    tool,
    argv,
    files: sessionFiles(run.sessionDir),
    version: run.services.programs.version,
  });
  if (verdict.verdict === 'allow') return verdict;
  throw new TaskError('argv_not_allowed', verdict.message, {
    details: { rule: verdict.rule, index: verdict.index, argument: verdict.argument.slice(0, 512) },
  });
}

type Ended = Extract<ChildOutcome, { kind: 'ended' }>;

async function runProgram(
  tool: 'ffmpeg' | 'ffprobe',
  argv: readonly string[],
  timeoutSec: number | null | undefined,
  run: OpRun,
  sinks: { onStdout(chunk: Buffer): void; onStderr(chunk: Buffer): void },
): Promise<Ended> {
  const { services, sessionDir } = run;
  const known = new Map<string, number>();
  const used = await measure(sessionDir, (path, bytes) => known.set(path, bytes));
  const limits = {
    totalBytes: await reachableBytes(sessionDir, services.sessionQuotaBytes, used.bytes),
    fileBytes: Math.min(run.maxOutputBytes, services.maxOutputBytes),
    known,
  };
  if (tool === 'ffmpeg' && used.bytes >= limits.totalBytes)
    throw quotaError({ code: 'disk_full', bytes: used.bytes }, limits);

  // Looked at beforehand, because a wrapper that cannot start the program would only answer with an exit code of its own.
  const problem = await access(services.programs[tool], constants.X_OK).then(
    () => undefined,
    (error: NodeJS.ErrnoException) => error.code ?? 'UNKNOWN',
  );
  if (problem !== undefined) throw unavailable(tool, problem, services);

  let breach: QuotaBreach | undefined;
  let watch: { stop(): void } | undefined;
  const wrapped = services.sandbox.wrap({
    program: services.programs[tool],
    argv,
    sessionDir,
    environment: services.environment,
  });
  const room = Math.max(0, limits.totalBytes - used.bytes);
  const command = withFileLimit(wrapped, Math.max(0, Math.min(limits.fileBytes, room + used.largest.bytes)));
  const outcome = await runChild(
    {
      program: command.program,
      argv: command.argv,
      env: command.environment,
      cwd: sessionDir,
      marker: services.nextMarker(),
      signal: run.signal,
      ...(timeoutSec == null ? {} : { timeoutMs: timeoutSec * 1000 }),
      ...sinks,
      onStarted(_pid, stop) {
        if (tool === 'ffprobe') return;
        watch = watchQuota(sessionDir, limits, (found) => {
          breach = found;
          stop('quota');
        });
      },
    },
    services.guardian,
  );
  watch?.stop();
  if (outcome.kind === 'not_started') throw unavailable(tool, outcome.code, services);
  if (breach === undefined && tool === 'ffmpeg') {
    // The program may end, or the kernel's limit for a file strike, between two looks of the watch. A file that met that limit has just its size.
    const met = outcome.exitCode === 0 ? 0 : 1;
    breach = await findBreach(sessionDir, {
      ...limits,
      fileBytes: limits.fileBytes - met,
      totalBytes: limits.totalBytes - met,
    });
  }
  if (breach) {
    await removeGrown(sessionDir, known);
    throw quotaError(breach, limits);
  }
  switch (outcome.stopped) {
    case null:
    case 'quota':
      return outcome;
    case 'timeout':
      throw new TaskError('timeout', `${tool} did not finish within ${timeoutSec} s and was stopped`);
    case 'aborted':
    case 'stalled':
      throw abortReason(run.signal);
  }
}

/** What the stopped run created or grew goes, so that the session has room again: media sessions have no op that deletes. */
async function removeGrown(sessionDir: string, known: ReadonlyMap<string, number>): Promise<void> {
  const grown: string[] = [];
  await measure(sessionDir, (path, bytes) => {
    if (bytes > (known.get(path) ?? -1)) grown.push(path);
  });
  for (const path of grown) await rm(join(sessionDir, path), { force: true });
}

function unavailable(tool: 'ffmpeg' | 'ffprobe', code: string, services: Services): TaskError {
  services.programLost(tool, code);
  return new TaskError(`${tool}_unavailable`, `${tool} cannot be started on this host any more (${code})`, {
    retryable: true,
  });
}

function quotaError(breach: QuotaBreach, limits: { totalBytes: number; fileBytes: number }): TaskError {
  switch (breach.code) {
    case 'disk_full':
      return new TaskError(
        'disk_full',
        `the session has ${breach.bytes} bytes on disk, allowed are ${limits.totalBytes}; the program was stopped and what it had written is removed`,
      );
    case 'output_too_large':
      return new TaskError(
        'output_too_large',
        `"${breach.path}" has ${breach.bytes} bytes, allowed are ${limits.fileBytes}; the program was stopped and what it had written is removed`,
      );
  }
}

function tailText(tail: TailBuffer, run: OpRun): string {
  const text = Buffer.from(tail.truncated ? alignStart(tail.bytes()) : tail.bytes()).toString('utf8');
  return relativePaths(text, run.services.sandbox.roots(run.sessionDir));
}

function isDiskFull(exitCode: number, stderrTail: string): boolean {
  return exitCode === 153 || /No space left on device|File too large|Disk quota exceeded/.test(stderrTail);
}

/** Cuts a text so that it needs at most `limit` bytes as a JSON string; never inside a surrogate pair. */
function fitJson(text: string, limit: number): string {
  if (Buffer.byteLength(JSON.stringify(text)) <= limit) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (Buffer.byteLength(JSON.stringify(text.slice(0, middle))) <= limit) low = middle;
    else high = middle - 1;
  }
  const cut = text.charCodeAt(low - 1);
  return text.slice(0, cut >= 0xd800 && cut <= 0xdbff ? low - 1 : low);
}
