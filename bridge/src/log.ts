/** The bridge's log: events of the core, as they are, as lines on stderr. */
import { createLog as createDaemonLog, LOG_LEVELS, type LogLevel } from '@reelhost/log';

export { LOG_LEVELS, type LogLevel };

/** One event with its fields. */
export type Log = (
  level: 'debug' | 'info' | 'warn' | 'error',
  event: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

/** Makes the log of a process. */
export function createLog(level: LogLevel): Log {
  const logger = createDaemonLog('bridge', level);
  return (at, event, fields = {}) => logger[at]({ event, ...fields });
}
