/**
 * Linux, first choice: namespaces of its own for users, files, network, processes and IPC, made by bubblewrap without privileges. A child sees the program,
 * the system's libraries, our fonts and the session (as /session); it has no network, no capabilities, and dies with us.
 */
import { existsSync, lstatSync, readlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ReadableParts, Sandbox, SandboxCommand, WrappedCommand } from './sandbox.js';

/** The session's directory as the child sees it. */
export const SESSION_MOUNT = '/session';
/** Room in the child's own /tmp, bytes. Nothing we run needs it; it is not part of the disk quota, so it is small. */
const TMP_BYTES = 16 * 1024 * 1024;

/** Folders a dynamically linked program may need; those that are links on the host become the same links inside. */
const LIBRARY_FOLDERS = [
  '/usr/lib',
  '/usr/lib32',
  '/usr/lib64',
  '/usr/libexec',
  '/lib',
  '/lib32',
  '/lib64',
  '/usr/share/fonts',
  '/usr/local/lib',
];
const LIBRARY_FILES = ['/etc/ld.so.cache', '/etc/ld.so.conf', '/etc/ld.so.conf.d', '/etc/alternatives'];
/** Package managers that keep programs together with their libraries. */
const PREFIXES = ['/nix/store', '/home/linuxbrew/.linuxbrew', '/opt', '/snap', '/gnu/store'];

/** `bwrap` is the absolute path of the program; `disableUserns` where its version knows that option (0.8). */
export function bubblewrap(bwrap: string, readable: ReadableParts, options: { disableUserns: boolean }): Sandbox {
  const fixed = [
    '--unshare-all',
    '--unshare-user',
    ...(options.disableUserns ? ['--disable-userns'] : []),
    '--die-with-parent',
    '--new-session',
    '--cap-drop',
    'ALL',
    ...libraries(),
    '--proc',
    '/proc',
    '--dev',
    '/dev',
    ...(options.disableUserns ? ['--size', String(TMP_BYTES)] : []),
    '--tmpfs',
    '/tmp',
    ...readable.paths.flatMap((path) => ['--ro-bind', path, path]),
  ];
  return {
    name: 'bubblewrap',
    network: 'closed',
    wrap(command: SandboxCommand): WrappedCommand {
      const { program, argv, sessionDir } = command;
      return {
        program: bwrap,
        argv: [
          ...fixed,
          ...programMounts(program),
          '--bind',
          sessionDir,
          SESSION_MOUNT,
          '--chdir',
          SESSION_MOUNT,
          '--',
          program,
          ...argv,
        ],
        // The environment passes through bubblewrap as it is: it was built from nothing, and the marker must reach the child.
        environment: { ...command.environment, HOME: '/tmp', TMPDIR: '/tmp' },
      };
    },
    roots: (sessionDir) => [sessionDir, SESSION_MOUNT],
  };
}

function libraries(): string[] {
  const mounts: string[] = [];
  for (const path of LIBRARY_FOLDERS) {
    let link: string | undefined;
    try {
      const seen = lstatSync(path);
      if (seen.isSymbolicLink()) link = readlinkSync(path);
      else if (!seen.isDirectory()) continue;
    } catch {
      continue;
    }
    mounts.push(...(link === undefined ? ['--ro-bind', path, path] : ['--symlink', link, path]));
  }
  for (const path of LIBRARY_FILES) mounts.push('--ro-bind-try', path, path);
  return mounts;
}

/** The program itself, and what was installed together with it. */
function programMounts(program: string): string[] {
  const prefix = PREFIXES.find((each) => program.startsWith(`${each}/`));
  if (prefix === '/opt' || prefix === '/snap') {
    // Only the package's own subfolder: /opt/<name>.
    const folder = program.split('/').slice(0, 3).join('/');
    return ['--ro-bind', folder, folder];
  }
  if (prefix !== undefined) return ['--ro-bind', prefix, prefix];
  const beside = join(dirname(dirname(program)), 'lib');
  const own = ['--ro-bind', program, program];
  return program.startsWith('/usr/') || !existsSync(beside) ? own : [...own, '--ro-bind', beside, beside];
}
