/** Log lines of `up` itself: JSON in the form of the daemons' lines, or a short plain line where a person watches. To stderr. */

import pc from 'picocolors';
import { useColor } from '../terminal.js';

const LEVELS = { info: 30, warn: 40, error: 50 } as const;

/** Writes one event with its fields. */
export type UpLog = (level: keyof typeof LEVELS, event: string, fields?: Record<string, unknown>) => void;

/** JSON lines off a terminal, plain lines on one. */
export function upLog(stream: NodeJS.WriteStream, clock: () => number): UpLog {
  const colors = pc.createColors(useColor(stream, undefined));
  return (level, event, fields = {}) => {
    if (stream.isTTY !== true) {
      stream.write(
        `${JSON.stringify({ level: LEVELS[level], time: new Date(clock()).toISOString(), daemon: 'up', pid: process.pid, event, ...fields })}\n`,
      );
      return;
    }
    const mark = { info: colors.dim('up'), warn: colors.yellow('up'), error: colors.red('up') }[level];
    const rest = Object.entries(fields).map(
      ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
    );
    stream.write(`${mark} ${event} ${rest.join(' ')}\n`);
  };
}
