/**
 * macOS: a Seatbelt profile through /usr/bin/sandbox-exec. Deny by default; the system's libraries and our fonts are readable, the session is writable,
 * there is no network. Rules match resolved paths, so every path given here is resolved by the caller. Hardware encoders need services this
 * profile does not open; they are advertised only if they pass their trial inside it.
 */
import { realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import type { ReadableParts, Sandbox, SandboxCommand, WrappedCommand } from './sandbox.js';

/** Where the program lies on every macOS that has it. */
export const SANDBOX_EXEC = '/usr/bin/sandbox-exec';

/** The mechanism with its profile. */
export function sandboxExec(readable: ReadableParts): Sandbox {
  return {
    name: 'sandbox-exec',
    network: 'closed',
    wrap({ program, argv, sessionDir, environment }: SandboxCommand): WrappedCommand {
      const profile = seatbeltProfile(resolved(program), resolved(sessionDir), readable.paths.map(resolved));
      return { program: SANDBOX_EXEC, argv: ['-p', profile, program, ...argv], environment };
    },
    roots: (sessionDir) => [sessionDir, resolved(sessionDir)],
  };
}

/** The profile text; a table rather than code, so that it can be read as a whole. */
export function seatbeltProfile(program: string, sessionDir: string, readable: readonly string[]): string {
  return [
    '(version 1)',
    '(deny default)',
    '(allow process-fork)',
    `(allow process-exec (literal ${quoted(program)}))`,
    '(allow sysctl-read)',
    '(allow mach-lookup (global-name "com.apple.system.logger"))',
    '(allow file-read-metadata)',
    '(allow file-read* (subpath "/usr/lib") (subpath "/System") (subpath "/Library/Fonts") (subpath "/opt/homebrew") (subpath "/usr/local")',
    '  (literal "/") (literal "/dev/null") (literal "/dev/urandom") (literal "/dev/random")',
    `  (literal ${quoted(program)}) (subpath ${quoted(dirname(program))})${readable.map((path) => ` (subpath ${quoted(path)})`).join('')})`,
    `(allow file-read* file-write* (subpath ${quoted(sessionDir)}))`,
    '(allow file-write-data (literal "/dev/null"))',
    '(deny network*)',
    '',
  ].join('\n');
}

function quoted(path: string): string {
  return `"${path.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

function resolved(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
