/**
 * Where log lines leave a process. Whoever logs is never held up by whoever reads: lines are gathered for a moment and written without waiting; what a full pipe does
 * not take stays here and is offered again. Beyond a limit new lines are dropped, and a line that counts them stands where they would have stood.
 *
 * Every line passes the redaction as its very last step. Lines up to PIPE_BUF are written whole, so those of daemons that share one pipe do not mix. What is left at the end of the process
 * is written then, also after process.exit and an uncaught exception; a reader that does not read even then is waited for only for so long.
 *
 * A file takes lines at once. A terminal that its user has stopped (Ctrl-S) does hold up the process: that is what stopping it means.
 */
import { writeSync } from 'node:fs';
import { redactLine } from '@reelhost/protocol';

/** Limits and times; bytes and milliseconds. */
export const LOG_LIMITS = {
  /** Unwritten lines beyond this are dropped and counted. */
  bufferedBytes: 1024 * 1024,
  /** POSIX PIPE_BUF: a pipe takes this much whole, or nothing of it. */
  writeBytes: 4096,
  /** A line after a pause of this length leaves at once; those that follow it leave together after this time, or with one that is urgent. */
  gatherMs: 100,
  /** What could not be written is offered again after this time. */
  retryMs: 50,
  /** At the end of the process a reader that does not read is waited for this long. */
  exitPatienceMs: 1_000,
} as const;

const EXIT_LOOK_MS = 5;

/** See the head of the file. */
export class LogOutput {
  readonly #fd: number;
  readonly #beforeWriting: () => void;
  #lines: { readonly text: string; readonly bytes: number }[] = [];
  /** What is left of a write that was taken in part. */
  #rest: Buffer | null = null;
  #bufferedBytes = 0;
  #dropped = 0;
  #timer: NodeJS.Timeout | null = null;
  #isStuck = false;
  #flushedAt = Number.NEGATIVE_INFINITY;
  /** No timer runs any more: what an exit handler still says leaves at once, or not at all. */
  #isEnding = false;

  /** `beforeWriting` makes sure that the descriptor does not block. Lines still here when the process ends are written then. */
  constructor(fd: number, beforeWriting: () => void = () => undefined) {
    this.#fd = fd;
    this.#beforeWriting = beforeWriting;
    process.once('exit', () => this.#finish());
  }

  /** Takes one line, with its line feed. It leaves soon; an urgent one at once, if it can. */
  write(line: string, isUrgent = false): void {
    const text = redactLine(line);
    const bytes = Buffer.byteLength(text);
    if (this.#dropped > 0 || this.#bufferedBytes + bytes > LOG_LIMITS.bufferedBytes) {
      this.#dropped += 1;
      return;
    }
    this.#add(text, bytes);
    if (this.#isStuck) return;
    if (isUrgent || this.#isEnding || performance.now() - this.#flushedAt >= LOG_LIMITS.gatherMs) this.flush();
    else this.#flushIn(LOG_LIMITS.gatherMs);
  }

  /** Writes what is taken without waiting. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#flushedAt = performance.now();
    this.#isStuck = this.#writeAll() !== null;
    if (this.#isStuck) this.#flushIn(LOG_LIMITS.retryMs);
  }

  #add(text: string, bytes: number): void {
    this.#lines.push({ text, bytes });
    this.#bufferedBytes += bytes;
  }

  #flushIn(ms: number): void {
    if (this.#timer !== null) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.flush();
    }, ms);
    this.#timer.unref();
  }

  /** Null when everything is written, or why it is not: EAGAIN for a full pipe, ENOSPC, EPIPE … */
  #writeAll(): string | null {
    if (this.#bufferedBytes > 0) this.#beforeWriting();
    for (let chunk = this.#nextChunk(); chunk !== null; chunk = this.#nextChunk()) {
      try {
        const written = writeSync(this.#fd, chunk);
        this.#bufferedBytes -= written;
        this.#rest = written < chunk.length ? chunk.subarray(written) : null;
      } catch (error) {
        this.#rest = chunk;
        return error instanceof Error && 'code' in error ? String(error.code) : 'error';
      }
      this.#sayWhatWasDropped();
    }
    return null;
  }

  #nextChunk(): Buffer | null {
    if (this.#rest !== null) return this.#rest;
    let bytes = 0;
    let count = 0;
    for (const line of this.#lines) {
      if (count > 0 && bytes + line.bytes > LOG_LIMITS.writeBytes) break;
      bytes += line.bytes;
      count += 1;
    }
    if (count === 0) return null;
    return Buffer.from(
      this.#lines
        .splice(0, count)
        .map((line) => line.text)
        .join(''),
    );
  }

  /** Said as soon as there is room again; until then nothing else is taken, so the line stands where the dropped ones would have stood. */
  #sayWhatWasDropped(): void {
    if (this.#dropped === 0) return;
    const fields = { level: 40, time: new Date().toISOString(), pid: process.pid, event: 'log.dropped' };
    const line = `${JSON.stringify({ ...fields, lines: this.#dropped })}\n`;
    this.#dropped = 0;
    this.#add(line, line.length);
  }

  #finish(): void {
    const clock = new Int32Array(new SharedArrayBuffer(4));
    const endMs = performance.now() + LOG_LIMITS.exitPatienceMs;
    while (this.#writeAll() === 'EAGAIN' && performance.now() < endMs) Atomics.wait(clock, 0, 0, EXIT_LOOK_MS);
    this.#isStuck = false;
    this.#isEnding = true;
  }
}

let stderr: LogOutput | null = null;

/** The one output of this process on its standard error: two would mix their lines. */
export function stderrOutput(): LogOutput {
  stderr ??= new LogOutput(2, stopBlocking);
  return stderr;
}

/**
 * Pipes and sockets must not block. Node sees to it when it opens them, but the mode belongs to everybody who has inherited the same pipe, and a sibling that
 * starts or ends sets it back; so it is set again before each write.
 */
function stopBlocking(): void {
  const stream: object = process.stderr;
  if (process.stderr.isTTY === true || !('_handle' in stream)) return;
  const handle = stream._handle;
  if (typeof handle !== 'object' || handle === null || !('setBlocking' in handle)) return;
  if (typeof handle.setBlocking === 'function') handle.setBlocking(false);
}
