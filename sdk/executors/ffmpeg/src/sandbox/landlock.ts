/**
 * Linux, second choice: Landlock rules set by `setpriv` of util-linux 2.41 or newer. It needs no namespaces, so it works where unprivileged user
 * namespaces are blocked and in most containers. Landlock closes the files only. The network is closed beside it, by the first of these that passes the
 * self-test: a system call filter (seccomp.ts), a network namespace of its own (`unshare`), or not at all, which is then said wherever the sandbox is named.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
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

/** For an executor that was started with privileges: its children get none. Without any there is nothing to drop, and asking for it would fail. */
const DROP_CAPABILITIES = ['--inh-caps=-all', '--bounding-set=-all'];
const CAP_SETPCAP = 8n;

/** What closes the network: a filter in a file that the child cannot change, a namespace made by `unshare` (its absolute path), or nothing. */
export type NetworkGuard =
  | { kind: 'filter'; file: string }
  | { kind: 'namespace'; unshare: string }
  | { kind: 'nothing' };

/** `setpriv` is the absolute path of a version that knows --landlock-access, and --seccomp-filter for a guard of that kind. */
export function landlock(setpriv: string, readable: ReadableParts, guard: NetworkGuard): Sandbox {
  const fixed = ['--no-new-privs', ...(mayDropCapabilities() ? DROP_CAPABILITIES : []), '--landlock-access', 'fs'];
  for (const path of LIBRARIES) if (existsSync(path)) fixed.push(rule('execute,read-file,read-dir', path));
  for (const path of [...FILES, ...readable.paths])
    if (existsSync(path)) fixed.push(rule(isFolder(path) ? 'read-file,read-dir' : 'read-file', path));
  fixed.push(rule('read-file,write-file', '/dev/null'));
  if (guard.kind === 'filter') fixed.push('--seccomp-filter', guard.file);
  // The namespace is entered first: afterwards the rules are in force for unshare as well.
  const before = guard.kind === 'namespace' ? [guard.unshare, '--user', '--map-current-user', '--net', '--'] : [];
  return {
    name: 'landlock',
    network: guard.kind === 'nothing' ? 'open' : 'closed',
    wrap({ program, argv, sessionDir, environment }: SandboxCommand): WrappedCommand {
      const own = [rule('execute,read-file', program)];
      const beside = join(dirname(dirname(program)), 'lib');
      if (!program.startsWith('/usr/') && existsSync(beside)) own.push(rule('execute,read-file,read-dir', beside));
      const session = rule(
        'read-file,read-dir,write-file,truncate,make-reg,make-dir,remove-file,remove-dir,refer',
        sessionDir,
      );
      const [first = setpriv, ...rest] = [...before, setpriv, ...fixed, ...own, session, program, ...argv];
      return { program: first, argv: rest, environment };
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

function mayDropCapabilities(): boolean {
  const effective = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '0';
  return ((BigInt(`0x${effective}`) >> CAP_SETPCAP) & 1n) === 1n;
}
