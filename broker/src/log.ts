/** The broker's log. */
import { createLog as createDaemonLog, LOG_LEVELS, type Logger, type LogLevel } from '@reelhost/log';

export { LOG_LEVELS, type Logger, type LogLevel };

/** The daemon's logger. */
export function createLog(level: LogLevel): Logger {
  return createDaemonLog('broker', level);
}
