/** The log: JSON lines on stderr, one event name plus fields. Every line passes the redaction as its very last step; a log that cannot be written never ends the broker. */
import { redactLine } from '@reelhost/protocol';
import { type Level, type Logger, pino } from 'pino';

export type { Logger };

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The daemon's logger. */
export function createLog(level: LogLevel): Logger {
  const stream = {
    write(line: string): void {
      try {
        process.stderr.write(redactLine(line));
      } catch {
        // Nowhere to say it.
      }
    },
  };
  process.stderr.on('error', () => undefined);
  return pino(
    { level: level as Level, base: { daemon: 'broker', pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime },
    stream,
  );
}
