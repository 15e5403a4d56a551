/**
 * Where the broker's socket is, decided as every Tay engine and client does: explicit path, `TAY_SOCKET_PATH`, `/run/tay` when it
 * exists, `XDG_RUNTIME_DIR`, `TMPDIR`, `/tmp`. An explicit path that is wrong is an error, never silently replaced by the next.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { normalize } from 'node:path';
import { MAX_SOCKET_PATH_BYTES } from '@reelhost/protocol';
import { isWellFormed } from './core/unicode.js';

/** What the decision depends on. */
export interface SocketPathHost {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly uid: number;
  /** Whether a directory exists. */
  isDirectory(path: string): boolean;
  /** Whether this process may create files in a directory. */
  isUsable(path: string): boolean;
}

/** Thrown for a path that can not be a socket's. */
export class InvalidSocketPath extends Error {
  override readonly name = 'InvalidSocketPath';
  readonly code = 'invalid_socket_path';
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function isUsable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return isDirectory(path);
  } catch {
    // Not there, or not ours to write in: the next candidate decides.
    return false;
  }
}

function checked(path: string, origin: string): string {
  if (!path.startsWith('/')) throw new InvalidSocketPath(`${origin} must be an absolute path`);
  if (path.includes('\0') || !isWellFormed(path))
    throw new InvalidSocketPath(`${origin} has characters no path can have`);
  const bytes = Buffer.byteLength(path);
  if (bytes > MAX_SOCKET_PATH_BYTES) {
    throw new InvalidSocketPath(`${origin} has ${bytes} bytes; a socket path may have ${MAX_SOCKET_PATH_BYTES}`);
  }
  return normalize(path);
}

/**
 * The socket path, whether or not a socket is there.
 * @throws InvalidSocketPath when an explicit path or `TAY_SOCKET_PATH` is wrong, or nothing is usable.
 */
export function resolveSocketPath(
  explicit?: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
  host: Partial<Omit<SocketPathHost, 'env'>> = {},
): string {
  if (explicit !== undefined) return checked(explicit, 'the socket path');
  const fromEnv = env['TAY_SOCKET_PATH'] ?? '';
  if (fromEnv !== '') return checked(fromEnv, 'TAY_SOCKET_PATH');
  const uid = host.uid ?? process.getuid?.() ?? 0;
  const exists = host.isDirectory ?? isDirectory;
  const usable = host.isUsable ?? isUsable;
  if (exists('/run/tay')) return '/run/tay/tay.sock';
  const xdg = env['XDG_RUNTIME_DIR'] ?? '';
  const tmp = env['TMPDIR'] ?? '';
  const candidates: [string, string][] = [];
  if (xdg.startsWith('/')) candidates.push([xdg, `${xdg}/tay/tay.sock`]);
  if (tmp.startsWith('/')) candidates.push([tmp, `${tmp}/tay-${uid}/tay.sock`]);
  candidates.push(['/tmp', `/tmp/tay-${uid}/tay.sock`]);
  for (const [base, path] of candidates) {
    if (!base.includes('\0') && Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES && usable(base))
      return normalize(path);
  }
  throw new InvalidSocketPath('no usable place for a socket; give --socket or set TAY_SOCKET_PATH');
}
