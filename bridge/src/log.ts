/** JSON lines on stderr: `{"event":"op.settled", …}`. Each finished line passes the redaction as its very last step; a log that cannot be written is no reason to stop. */
import { writeSync } from 'node:fs';
import { redactLine } from '@reelhost/protocol';
import pino, { type Logger } from 'pino';

/** Levels of `--log-level`. */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** One event with its fields. */
export type Log = (
  level: 'debug' | 'info' | 'warn' | 'error',
  event: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

/** Makes the log of a process; `write` is for tests. */
export function createLog(level: LogLevel, write: (line: string) => void = writeStderr): Log {
  const logger: Logger = pino(
    { level, base: { daemon: 'bridge', pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime },
    { write: (line: string) => write(redactLine(line)) },
  );
  return (at, event, fields = {}) => logger[at]({ event, ...fields });
}

function writeStderr(line: string): void {
  try {
    writeSync(2, line);
  } catch {
    // A full disk or a closed pipe must not end the daemon.
  }
}
