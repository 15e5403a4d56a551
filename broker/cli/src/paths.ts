/**
 * Decides where configuration, state and the socket lie when nobody says so. XDG on Linux, Library on macOS, /etc and /var/lib for root;
 * REELHOST_HOME overrides all of them. Creates nothing.
 */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { resolveSocketPath } from '@reelhost/sdk';

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

/** Resolves all places. Precedence: option, REELHOST_STATE_DIR / TAY_SOCKET_PATH, REELHOST_HOME, the platform's custom. */
export function hostPaths(options: PathOptions = {}, env: NodeJS.ProcessEnv = process.env): HostPaths {
  const system = process.getuid?.() === 0;
  const home = env['REELHOST_HOME'];
  const base = (name: string, xdg: string | undefined, fallback: string, ofSystem: string): string => {
    if (home !== undefined && home !== '') return join(resolve(home), name);
    if (xdg !== undefined && xdg !== '') return join(xdg, 'reelhost');
    if (system) return ofSystem;
    if (process.platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'reelhost');
    return join(homedir(), fallback, 'reelhost');
  };
  const configDir = base('config', env['XDG_CONFIG_HOME'], '.config', '/etc/reelhost');
  const stateDir =
    options.stateDir ??
    env['REELHOST_STATE_DIR'] ??
    base('state', env['XDG_STATE_HOME'], '.local/state', '/var/lib/reelhost');
  return {
    mode: system ? 'system' : 'user',
    config: expandHome(options.config ?? env['REELHOST_CONFIG'] ?? join(configDir, 'config.toml')),
    stateDir: expandHome(stateDir),
    socket: resolveSocketPath(options.socket === undefined ? undefined : expandHome(options.socket), env),
  };
}

/** `~/x` as a shell would read it; other relative paths against `from` (default: the working directory). */
export function expandHome(path: string, from: string = process.cwd()): string {
  if (path === '~') return homedir();
  if (path.startsWith('~/')) return join(homedir(), path.slice(2));
  return resolve(from, path);
}
