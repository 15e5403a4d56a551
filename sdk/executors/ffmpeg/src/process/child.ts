/**
 * Runs one program for an op: no shell, standard input from /dev/null, an environment built from nothing, a process group of its own, bounded
 * memory whatever it prints.
 *
 * Order of events: spawn → guardian told → output handed to the sinks as it comes → `exit` → leftovers killed → pipes drained, at most DRAIN_MS →
 * outcome. It is `exit` and not `close` that ends a run: a grandchild that holds the pipe would keep `close` away for ever.
 * A stop (abort signal, time limit, `stop()` of the caller) is SIGTERM to the tree, SIGKILL after KILL_AFTER_MS; the outcome comes only when the tree is gone.
 */
import { spawn } from 'node:child_process';
import type { Guardian } from './guardian.js';
import { MARKER_VARIABLE } from './marker.js';
import { KILL_AFTER_MS, type ProcessTree, signalTree, sweepTree } from './process-tree.js';

const DRAIN_MS = 1_500;

/** What to run. Paths are absolute; `env` is the whole environment (the marker is added). */
export interface ChildRequest {
  program: string;
  argv: readonly string[];
  cwd: string;
  env: Readonly<Record<string, string>>;
  /** Unique per run, see marker.ts. */
  marker: string;
  onStdout?: (chunk: Buffer) => void;
  onStderr?: (chunk: Buffer) => void;
  /** Aborting it stops the tree; the outcome then says `stopped`. */
  signal?: AbortSignal;
  /** Own limit in ms, 0 or absent: none. */
  timeoutMs?: number;
  /** Receives a function that stops the tree for a reason of the caller's (a quota). */
  onStarted?: (pid: number, stop: (reason: StopReason) => void) => void;
  killAfterMs?: number;
}

/** Why a run was stopped before its own end. */
export type StopReason = 'aborted' | 'timeout' | 'quota' | 'stalled';

/** How a run ended. */
export type ChildOutcome =
  | {
      kind: 'ended';
      /** 128 + signal number when a signal ended it, as a shell would say. */
      exitCode: number;
      signal: NodeJS.Signals | null;
      stopped: StopReason | null;
      durationMs: number;
      /** False when some process of the tree survived SIGKILL for seconds. */
      treeGone: boolean;
    }
  | { kind: 'not_started'; code: string; message: string };

/** Numbers of the signals that end programs; the same on Linux and macOS for these. */
const SIGNAL_NUMBERS: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGILL: 4,
  SIGTRAP: 5,
  SIGABRT: 6,
  SIGFPE: 8,
  SIGKILL: 9,
  SIGSEGV: 11,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
  SIGXCPU: 24,
  SIGXFSZ: 25,
  SIGSYS: 31,
};

/** Runs the program to its end. Never rejects. */
export async function runChild(request: ChildRequest, guardian?: Guardian): Promise<ChildOutcome> {
  await guardian?.start();
  const startedAt = performance.now();
  if (request.signal?.aborted) return endedEarly('aborted');

  let child: ReturnType<typeof launch>;
  try {
    child = launch(request);
  } catch (error) {
    return notStarted(error);
  }
  const failure = new Promise<Error>((resolve) => child.once('error', resolve));
  const { pid } = child;
  if (pid === undefined) return notStarted(await failure);

  const tree: ProcessTree = { leader: pid, marker: request.marker };
  guardian?.watch(pid, request.marker);
  child.stdout.on('data', (chunk: Buffer) => request.onStdout?.(chunk));
  child.stderr.on('data', (chunk: Buffer) => request.onStderr?.(chunk));
  const drained = Promise.all([ended(child.stdout), ended(child.stderr)]);

  let stopped: StopReason | null = null;
  let exited = false;
  let killTimer: NodeJS.Timeout | undefined;
  const stop = (reason: StopReason): void => {
    if (stopped !== null || exited) return;
    stopped = reason;
    signalTree(tree, 'SIGTERM');
    killTimer = setTimeout(() => signalTree(tree, 'SIGKILL'), request.killAfterMs ?? KILL_AFTER_MS);
  };
  const onAbort = (): void => stop('aborted');
  request.signal?.addEventListener('abort', onAbort, { once: true });
  const limit = request.timeoutMs ? setTimeout(() => stop('timeout'), request.timeoutMs) : undefined;
  const exit = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  request.onStarted?.(pid, stop);
  if (request.signal?.aborted) stop('aborted');

  const { code, signal } = await exit;
  exited = true;
  const durationMs = Math.round(performance.now() - startedAt);
  clearTimeout(killTimer);
  clearTimeout(limit);
  request.signal?.removeEventListener('abort', onAbort);
  const treeGone = await sweepTree(tree);
  guardian?.release(pid);
  await withDeadline(drained, DRAIN_MS);
  child.stdout.destroy();
  child.stderr.destroy();
  const exitCode = code ?? 128 + (SIGNAL_NUMBERS[signal ?? ''] ?? 0);
  return { kind: 'ended', exitCode, signal, stopped, durationMs, treeGone };
}

function launch(request: ChildRequest) {
  return spawn(request.program, request.argv, {
    cwd: request.cwd,
    env: { ...request.env, [MARKER_VARIABLE]: request.marker },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    shell: false,
    windowsHide: true,
  });
}

function notStarted(error: unknown): ChildOutcome {
  const { code, message } = error as NodeJS.ErrnoException;
  return { kind: 'not_started', code: code ?? 'UNKNOWN', message };
}

function endedEarly(stopped: StopReason): ChildOutcome {
  return { kind: 'ended', exitCode: 143, signal: 'SIGTERM', stopped, durationMs: 0, treeGone: true };
}

function ended(stream: NodeJS.ReadableStream): Promise<void> {
  return new Promise((resolve) => {
    stream.once('end', resolve);
    stream.once('close', resolve);
    stream.once('error', () => resolve());
  });
}

async function withDeadline(work: Promise<unknown>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([work, new Promise((resolve) => (timer = setTimeout(resolve, ms)))]);
  clearTimeout(timer);
}
