/** The log of a daemon: JSON lines on stderr, one event name plus fields: `{"level":30,"time":…,"daemon":"broker","pid":…,"event":"job.settled",…}`. Never payloads, never secrets. */
import { type Logger, pino } from 'pino';
import { stderrOutput } from './log-output.js';

export type { Logger };

/** Levels of `--log-level`. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const WARN = 40;

/** Takes finished lines, each with its line feed; those of warnings and errors are urgent. */
type Output = { write(line: string, isUrgent: boolean): void };

/** Makes the log of this process. `output` is for tests: the lines it gets are not redacted yet. */
export function createLog(daemon: string, level: LogLevel, output: Output = stderrOutput()): Logger {
  const stream = {
    // Asks pino for `lastLevel`.
    [Symbol.for('pino.metadata')]: true,
    lastLevel: 0,
    write(line: string): void {
      output.write(line, stream.lastLevel >= WARN);
    },
  };
  return pino({ level, base: { daemon, pid: process.pid }, timestamp: timeMember }, stream);
}

let second = Number.NaN;
let untilSecond = '';

/** The time as a member of a line. Its text up to the second is made once a second: making a date each time was half the price of a line. */
function timeMember(): string {
  const now = Date.now();
  const ms = now % 1_000;
  if (now - ms !== second) {
    second = now - ms;
    untilSecond = `,"time":"${new Date(second).toISOString().slice(0, -4)}`;
  }
  return `${untilSecond}${String(ms).padStart(3, '0')}Z"`;
}

/**
 * From now on an exception that nobody catches ends the process with code 1 and a last line, `<daemon>.crashed`, redacted like any other and written at every level of
 * the log. Returns what takes this back.
 */
export function exitOnCrash(daemon: string): () => void {
  const crashed = (error: unknown): never => {
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    createLog(daemon, 'fatal').fatal({ event: `${daemon}.crashed`, stack });
    process.exit(1);
  };
  process.on('uncaughtException', crashed);
  process.on('unhandledRejection', crashed);
  return () => {
    process.off('uncaughtException', crashed);
    process.off('unhandledRejection', crashed);
  };
}
