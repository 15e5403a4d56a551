/**
 * Turns the key=value lines of `ffmpeg -progress pipe:1` into progress people can trust.
 *
 * Rules: a percentage is never NaN, never falls, is absent while the length of the output is unknown, and is below 100 until the process has
 * ended with exit code 0 (the caller reports 100 itself then). The parser holds at most one line of MAX_LINE_BYTES, whatever arrives.
 * Order of events: text → feed() → a report per finished block (`progress=continue` or `progress=end`).
 */

/** What a finished block says. Times in microseconds of media time. */
export interface ProgressBlock {
  outTimeUs?: number;
  frame?: number;
  fps?: number;
  /** Media seconds per wall second. */
  speed?: number;
  totalBytes?: number;
  ended: boolean;
}

/** The shape of a progress message of the local protocol. */
export interface MediaProgress {
  stage: string;
  percent?: number;
  detail?: string;
}

/** A longer line is no progress line: it is skipped to its end. */
export const MAX_LINE_BYTES = 1024;
/** The most that is said before exit code 0 is known. */
export const MAX_RUNNING_PERCENT = 99;

/** Splits text into progress blocks; feed it decoded text in pieces of any size. */
export class ProgressParser {
  #line = '';
  #skipping = false;
  #block: ProgressBlock = { ended: false };

  feed(text: string): ProgressBlock[] {
    const blocks: ProgressBlock[] = [];
    let from = 0;
    for (let at = text.indexOf('\n', from); at !== -1; at = text.indexOf('\n', from)) {
      if (this.#skipping) this.#skipping = false;
      else {
        const block = this.#take(this.#line + text.slice(from, at));
        if (block) blocks.push(block);
      }
      this.#line = '';
      from = at + 1;
    }
    if (!this.#skipping) this.#line += text.slice(from, from + MAX_LINE_BYTES + 1);
    if (this.#line.length > MAX_LINE_BYTES) {
      this.#line = '';
      this.#skipping = true;
    }
    return blocks;
  }

  #take(line: string): ProgressBlock | undefined {
    const equals = line.indexOf('=');
    if (equals <= 0 || line.length > MAX_LINE_BYTES) return undefined;
    const key = line.slice(0, equals).trim();
    const value = line.slice(equals + 1).trim();
    const number = finite(value);
    // out_time_ms is in microseconds as well (an old mistake of ffmpeg that it keeps); builds before 4.x have only that one.
    if ((key === 'out_time_us' || key === 'out_time_ms') && number !== undefined && number >= 0)
      this.#block.outTimeUs = number;
    else if (key === 'frame' && number !== undefined && number >= 0) this.#block.frame = number;
    else if (key === 'fps' && number !== undefined && number >= 0) this.#block.fps = number;
    else if (key === 'total_size' && number !== undefined && number >= 0) this.#block.totalBytes = number;
    else if (key === 'speed') {
      const speed = finite(value.replace(/x$/, ''));
      if (speed !== undefined && speed > 0) this.#block.speed = speed;
    } else if (key === 'progress') {
      const block = { ...this.#block, ended: value === 'end' };
      this.#block = { ended: false };
      return block;
    }
    return undefined;
  }
}

/** Follows one ffmpeg run and says what to report. `durationUs` may become known later; a percentage never falls because of it. */
export class ProgressMeter {
  #percent: number | undefined;

  constructor(
    private readonly stage: string,
    private durationUs?: number,
  ) {}

  /** The length of what is being written, when it is learnt from the log after the start. */
  learnDuration(durationUs: number): void {
    if (Number.isFinite(durationUs) && durationUs > 0) this.durationUs ??= durationUs;
  }

  report(block: ProgressBlock): MediaProgress {
    const { durationUs } = this;
    let etaSec: number | undefined;
    if (durationUs !== undefined && durationUs > 0 && block.outTimeUs !== undefined) {
      const now = Math.min(MAX_RUNNING_PERCENT, (block.outTimeUs / durationUs) * 100);
      this.#percent = Math.max(this.#percent ?? 0, Math.round(now * 10) / 10);
      if (block.speed !== undefined) etaSec = Math.max(0, (durationUs - block.outTimeUs) / 1e6 / block.speed);
    }
    return {
      stage: this.stage,
      ...(this.#percent === undefined ? {} : { percent: this.#percent }),
      detail: describeBlock(block, etaSec),
    };
  }

  /** To be reported after exit code 0, and only then. */
  finished(): MediaProgress {
    this.#percent = 100;
    return { stage: this.stage, percent: 100 };
  }
}

function describeBlock(block: ProgressBlock, etaSec: number | undefined): string {
  const parts: string[] = [];
  if (block.frame !== undefined) parts.push(`frame ${block.frame}`);
  if (block.outTimeUs !== undefined) parts.push(`time ${formatTime(block.outTimeUs / 1e6)}`);
  if (block.speed !== undefined) parts.push(`speed ${block.speed}x`);
  if (etaSec !== undefined) parts.push(`eta ${formatTime(Math.ceil(etaSec))}`);
  return parts.join(', ');
}

/** 3725.5 → "1:02:05.5"; whole seconds have no fraction. */
export function formatTime(seconds: number): string {
  const tenths = Math.round(seconds * 10);
  const whole = Math.floor(tenths / 10);
  const fraction = tenths % 10;
  const pad = (value: number): string => String(value).padStart(2, '0');
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const start = hours > 0 ? `${hours}:${pad(minutes)}` : String(minutes);
  return `${start}:${pad(whole % 60)}${fraction > 0 ? `.${fraction}` : ''}`;
}

function finite(text: string): number | undefined {
  if (text === '' || text === 'N/A') return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}
