/**
 * Linux, second choice: Landlock rules set by `setpriv` of util-linux 2.41 or newer. It needs no namespaces, so it works where unprivileged user
 * namespaces are blocked and in most containers. Files only: the network stays as it is, and the validator with `-protocol_whitelist` guards it.
 */
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ReadableParts, Sandbox, SandboxCommand, WrappedCommand } from './sandbox.js';

const LIBRARIES = [
  '/usr/lib',
  '/usr/lib32',
  '/usr/lib64',
  '/lib',
  '/lib32',
  '/lib64',
  '/usr/local/lib',
  '/nix/store',
  '/gnu/store',
  '/home/linuxbrew/.linuxbrew',
];
const FILES = [
  '/etc/ld.so.cache',
  '/etc/alternatives',
  '/dev/urandom',
  '/dev/random',
  '/usr/share/fonts',
  '/proc/cpuinfo',
  '/proc/meminfo',
  '/sys/devices/system/cpu',
];

/** `setpriv` is the absolute path of a version that knows --landlock-access. */
export function landlock(setpriv: string, readable: ReadableParts): Sandbox {
  const fixed = ['--no-new-privs', '--landlock-access', 'fs'];
  for (const path of LIBRARIES) if (existsSync(path)) fixed.push(rule('execute,read-file,read-dir', path));
  for (const path of [...FILES, ...readable.paths])
    if (existsSync(path)) fixed.push(rule(isFolder(path) ? 'read-file,read-dir' : 'read-file', path));
  fixed.push(rule('read-file,write-file', '/dev/null'));
  return {
    name: 'landlock',
    wrap({ program, argv, sessionDir, environment }: SandboxCommand): WrappedCommand {
      const own = [rule('execute,read-file', program)];
      const beside = join(dirname(dirname(program)), 'lib');
      if (!program.startsWith('/usr/') && existsSync(beside)) own.push(rule('execute,read-file,read-dir', beside));
      const session = rule(
        'read-file,read-dir,write-file,truncate,make-reg,make-dir,remove-file,remove-dir,refer',
        sessionDir,
      );
      return { program: setpriv, argv: [...fixed, ...own, session, program, ...argv], environment };
    },
    roots: (sessionDir) => [sessionDir],
  };
}

function rule(access: string, path: string): string {
  return `--landlock-rule=path-beneath:${access}:${path}`;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
