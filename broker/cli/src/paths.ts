/**
 * Decides where configuration, state and the socket lie when nobody says so. XDG on Linux, Library on macOS, /etc and /var/lib for root;
 * REELHOST_HOME overrides all of them. Creates nothing.
 */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { resolveSocketPath } from '@reelhost/sdk';
import { CommandError, ExitCode } from './exit-codes.js';

/** The places of one installation; all absolute. */
export interface HostPaths {
  readonly mode: 'system' | 'user';
  readonly config: string;
  readonly stateDir: string;
  readonly socket: string;
}

/** What a command line may override. */
export interface PathOptions {
  readonly socket?: string | undefined;
  readonly stateDir?: string | undefined;
  readonly config?: string | undefined;
}

/**
 * Resolves all places. Precedence: option, REELHOST_STATE_DIR / TAY_SOCKET_PATH, REELHOST_HOME, the platform's custom.
 * @throws CommandError the path of the socket cannot be one: usage when it was an option, else badConfig
 */
export function hostPaths(options: PathOptions = {}, env: NodeJS.ProcessEnv = process.env): HostPaths {
  const configDir = baseFolder(env, 'config', env['XDG_CONFIG_HOME'], '.config', '/etc/reelhost');
  return {
    mode: isSystem() ? 'system' : 'user',
    config: expandHome(options.config ?? env['REELHOST_CONFIG'] ?? join(configDir, 'config.toml')),
    stateDir: options.stateDir === undefined ? defaultStateDir(env) : expandHome(options.stateDir),
    socket: socketPath(options.socket, env),
  };
}

/** Where the state lies when no option says so; absolute. */
export function defaultStateDir(env: NodeJS.ProcessEnv = process.env): string {
  return expandHome(
    env['REELHOST_STATE_DIR'] ?? baseFolder(env, 'state', env['XDG_STATE_HOME'], '.local/state', '/var/lib/reelhost'),
  );
}

function isSystem(): boolean {
  return process.getuid?.() === 0;
}

function baseFolder(
  env: NodeJS.ProcessEnv,
  name: string,
  xdg: string | undefined,
  fallback: string,
  ofSystem: string,
): string {
  const home = env['REELHOST_HOME'];
  if (home !== undefined && home !== '') return join(resolve(home), name);
  if (xdg !== undefined && xdg !== '') return join(xdg, 'reelhost');
  if (isSystem()) return ofSystem;
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'reelhost');
  return join(homedir(), fallback, 'reelhost');
}

function socketPath(option: string | undefined, env: NodeJS.ProcessEnv): string {
  try {
    return resolveSocketPath(option === undefined ? undefined : expandHome(option), env);
  } catch (error) {
    const code = option === undefined ? ExitCode.badConfig : ExitCode.usage;
    throw new CommandError(code, `${(error as Error).message}; choose a shorter, absolute one`, { cause: error });
  }
}

/** `~/x` as a shell would read it; other relative paths against `from` (default: the working directory). */
export function expandHome(path: string, from: string = process.cwd()): string {
  if (path === '~') return homedir();
  if (path.startsWith('~/')) return join(homedir(), path.slice(2));
  return resolve(from, path);
}
