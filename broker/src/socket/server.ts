/**
 * The listening socket. It is bound at its final name with its final mode, only by the holder of the lock beside it, only over nothing or over a
 * socket that nobody listens on; and bound again when somebody removes its file, without disturbing the connections there are.
 */
import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { encodeError, encodeFrame } from '@reelhost/protocol';
import { SocketPathError } from './discovery.js';

/** What a listening socket needs to know, and whom it tells. */
export interface ServerOptions {
  readonly path: string;
  /** 0o600 or 0o660. */
  readonly mode: number;
  readonly maxConnections: number;
  readonly onConnection: (socket: Socket) => void;
  readonly onRefused: () => void;
}

const PROBE_MS = 2000;
/** How long a refused connection may take to read why. */
const REFUSAL_MS = 1000;

/** One listening socket; see the head of this file. */
export class SocketServer {
  readonly #options: ServerOptions;
  #server: Server | null = null;
  #inode = 0;

  constructor(options: ServerOptions) {
    this.#options = options;
  }

  /** Binds. @throws SocketPathError when something else is at the path. */
  async listen(): Promise<void> {
    await clearPath(this.#options.path);
    await this.#bind();
  }

  /** Whether the file at the path is this server's socket. */
  get inPlace(): boolean {
    return inodeOf(this.#options.path) === this.#inode;
  }

  /** Binds again when the file is gone. False when something else has taken its place. */
  async restore(): Promise<boolean> {
    if (inodeOf(this.#options.path) !== null) return false;
    this.#server?.close();
    this.#server = null;
    await this.#bind();
    return true;
  }

  /** Takes no more connections and removes the socket file, if it is still its own. */
  close(): void {
    if (this.inPlace) this.#server?.close();
    else this.#server?.unref();
    this.#server = null;
  }

  async #bind(): Promise<void> {
    const { path, mode, maxConnections, onConnection, onRefused } = this.#options;
    const server = createServer({ allowHalfOpen: false });
    server.maxConnections = maxConnections;
    server.on('connection', onConnection);
    server.on('drop', onRefused);
    // The mode is right from the first moment: a chmod after bind would come too late.
    const before = process.umask(0o777 & ~mode);
    try {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen({ path, backlog: 511 }, resolve);
        process.umask(before);
      });
    } catch (cause) {
      throw new SocketPathError('socket_path_unavailable', `cannot listen at ${path}: ${(cause as Error).message}`, {
        cause,
      });
    } finally {
      process.umask(before);
    }
    chmodSync(path, mode);
    server.on('error', () => undefined);
    this.#server = server;
    this.#inode = inodeOf(path) ?? 0;
  }
}

/** Tells a connection that there are too many, and ends it. */
export function refuseConnection(socket: Socket, limit: number): void {
  socket.on('error', () => undefined);
  const message = `the broker serves ${limit} connections, more are not allowed`;
  socket.end(encodeFrame(encodeError(undefined, 'too_many_connections', { message })));
  setTimeout(() => socket.destroy(), REFUSAL_MS).unref();
}

/** Removes a socket nobody listens on. Anything else at the path stays untouched and is an error. */
async function clearPath(path: string): Promise<void> {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (!stat.isSocket())
    throw new SocketPathError('socket_path_exists', `${path} exists and is not a socket; it was left untouched`);
  const answer = await probe(path);
  if (answer === 'ENOENT') return;
  if (answer === 'connected') throw new SocketPathError('socket_path_in_use', `another process listens at ${path}`);
  if (answer !== 'ECONNREFUSED')
    throw new SocketPathError('socket_path_unavailable', `${path} cannot be checked: ${answer}`);
  const again = lstatSync(path, { throwIfNoEntry: false });
  if (again?.isSocket() === true && again.ino === stat.ino) unlinkSync(path);
}

function probe(path: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const done = (answer: string): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(PROBE_MS, () => done('connected'));
    socket.once('connect', () => done('connected'));
    socket.once('error', (error: NodeJS.ErrnoException) => done(error.code ?? 'unknown'));
  });
}

function inodeOf(path: string): number | null {
  return lstatSync(path, { throwIfNoEntry: false })?.ino ?? null;
}
