/**
 * Where the socket is, in Tay's order: explicit path, TAY_SOCKET_PATH, /run/tay when it exists, XDG_RUNTIME_DIR, TMPDIR, /tmp. An explicit or
 * environment path that is not usable is an error, never a reason to take the next one.
 */
import { accessSync, chmodSync, constants, lstatSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, normalize } from 'node:path';
import { makePrivateFolder } from '@reelhost/log/private-folder';
import { MAX_SOCKET_PATH_BYTES } from '@reelhost/protocol';

/** Why no socket can be made at a path. `code` is Tay's where Tay has one. */
export class SocketPathError extends Error {
  override readonly name = 'SocketPathError';
  constructor(
    readonly code:
      | 'invalid_socket_path'
      | 'no_usable_socket_path'
      | 'unsafe_socket_directory'
      | 'socket_path_exists'
      | 'socket_path_in_use'
      | 'socket_path_unavailable',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Where the socket will be. */
export interface SocketPlace {
  readonly path: string;
  /** Whether the broker chose it itself and so makes its directory (0700). */
  readonly automatic: boolean;
}

/** Resolves the path. `env` is the process environment. @throws SocketPathError */
export function resolveSocket(explicit: string | undefined, env: NodeJS.ProcessEnv): SocketPlace {
  if (explicit !== undefined) return { path: checked(explicit, '--socket'), automatic: false };
  const named = env['TAY_SOCKET_PATH'];
  if (named !== undefined && named !== '') return { path: checked(named, 'TAY_SOCKET_PATH'), automatic: false };
  if (isDirectory('/run/tay')) return { path: '/run/tay/tay.sock', automatic: false };
  const uid = process.getuid?.() ?? 0;
  const bases: readonly (readonly [string | undefined, string])[] = [
    [env['XDG_RUNTIME_DIR'], 'tay'],
    [env['TMPDIR'], `tay-${uid}`],
    ['/tmp', `tay-${uid}`],
  ];
  for (const [base, directory] of bases) {
    if (base === undefined || base === '' || !isAbsolute(base)) continue;
    const path = join(base, directory, 'tay.sock');
    if (Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES && isUsable(base)) return { path, automatic: true };
  }
  throw new SocketPathError(
    'no_usable_socket_path',
    'no directory for the socket: set --socket, or XDG_RUNTIME_DIR to a directory of yours',
  );
}

function checked(path: string, source: string): string {
  const problem =
    path.includes('\0') || !isAbsolute(path)
      ? 'must be an absolute path'
      : Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES
        ? `has ${Buffer.byteLength(path)} bytes, at most ${MAX_SOCKET_PATH_BYTES} are possible; choose a shorter one`
        : null;
  if (problem !== null) throw new SocketPathError('invalid_socket_path', `${source} ${problem}: ${path.slice(0, 200)}`);
  return normalize(path);
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function isUsable(base: string): boolean {
  try {
    accessSync(base, constants.W_OK | constants.X_OK);
    return statSync(base).isDirectory();
  } catch {
    return false;
  }
}

/** Makes or checks the directory of the socket before anything is put there. @throws SocketPathError when others could replace the socket. */
export function prepareSocketDirectory(place: SocketPlace): void {
  const directory = dirname(place.path);
  if (place.automatic) makePrivateFolder(directory);
  const uid = process.getuid?.() ?? 0;
  let stat: ReturnType<typeof lstatSync>;
  try {
    stat = place.automatic ? lstatSync(directory) : statSync(directory);
  } catch (cause) {
    throw new SocketPathError('invalid_socket_path', `the directory ${directory} does not exist; make it first`, {
      cause,
    });
  }
  if (!stat?.isDirectory()) throw new SocketPathError('unsafe_socket_directory', `${directory} is not a directory`);
  const systemOwned = stat.uid === 0 && !place.automatic;
  if (stat.uid !== uid && !systemOwned)
    throw new SocketPathError(
      'unsafe_socket_directory',
      `${directory} belongs to another user; name a socket in a folder of yours`,
    );
  if (place.automatic) chmodSync(directory, 0o700);
  else if ((stat.mode & 0o022) !== 0 && (stat.mode & 0o1000) === 0 && directory !== '/run/tay') {
    throw new SocketPathError(
      'unsafe_socket_directory',
      `${directory} can be written by other users: chmod go-w ${directory}`,
    );
  }
}
