/**
 * A limit on the size of any one file a child writes (RLIMIT_FSIZE), set by `prlimit` on Linux. The kernel stops the write at the byte: exit code 153,
 * or "File too large" in the log. It is the exact half of the disk quota; the watched directory is the other half.
 */
import { existsSync } from 'node:fs';
import type { WrappedCommand } from './sandbox.js';

const PRLIMIT = ['/usr/bin/prlimit', '/bin/prlimit', '/run/current-system/sw/bin/prlimit'].find((path) =>
  existsSync(path),
);

/** The same command under the limit; unchanged where there is no prlimit. Core files are never written. */
export function withFileLimit(command: WrappedCommand, bytes: number): WrappedCommand {
  if (process.platform !== 'linux' || PRLIMIT === undefined || !Number.isSafeInteger(bytes)) return command;
  return {
    ...command,
    program: PRLIMIT,
    argv: [`--fsize=${bytes}`, '--core=0', '--', command.program, ...command.argv],
  };
}
