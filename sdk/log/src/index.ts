/** The public surface of @reelhost/log, listed by hand. */
export { createLog, exitOnCrash, LOG_LEVELS, type Logger, type LogLevel } from './daemon-log.js';
export { LOG_LIMITS, LogOutput, stderrOutput } from './log-output.js';
