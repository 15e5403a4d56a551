/** Log lines of `up` itself: like the daemons' lines, or a short plain line where a person watches. To stderr. */
import { createLog } from '@reelhost/log';
import pc from 'picocolors';
import { useColor } from '../terminal.js';

/** Writes one event with its fields. */
export type UpLog = (level: 'info' | 'warn' | 'error', event: string, fields?: Record<string, unknown>) => void;

/** JSON lines off a terminal, plain lines on one. */
export function upLog(stream: NodeJS.WriteStream): UpLog {
  if (stream.isTTY !== true) {
    const logger = createLog('up', 'info');
    return (level, event, fields = {}) => logger[level]({ event, ...fields });
  }
  const colors = pc.createColors(useColor(stream, undefined));
  return (level, event, fields = {}) => {
    const mark = { info: colors.dim('up'), warn: colors.yellow('up'), error: colors.red('up') }[level];
    const rest = Object.entries(fields).map(
      ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
    );
    stream.write(`${mark} ${event} ${rest.join(' ')}\n`);
  };
}
