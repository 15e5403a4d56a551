/**
 * A peer that speaks the local protocol with nothing of ours but JSON and a socket: what it sends and expects is written out in the tests. It is
 * deliberately not the SDK, so that a mistake shared by broker and SDK is still seen.
 */
import { connect, type Socket } from 'node:net';

export interface Message {
  readonly type: string;
  readonly request_id?: string;
  readonly [field: string]: unknown;
}

interface Waiting {
  readonly matches: (message: Message) => boolean;
  readonly resolve: (message: Message) => void;
  readonly reject: (error: Error) => void;
}

/** Encodes one frame. */
export function frame(text: string): Buffer {
  const body = Buffer.from(text, 'utf8');
  const bytes = Buffer.alloc(4 + body.length);
  bytes.writeUInt32BE(body.length, 0);
  body.copy(bytes, 4);
  return bytes;
}

export class RawPeer {
  readonly socket: Socket;
  /** Everything received and not taken yet, in order. */
  readonly inbox: Message[] = [];
  /** The exact texts received, in order. */
  readonly texts: string[] = [];
  readonly closed: Promise<void>;
  #waiting: Waiting[] = [];
  #buffer: Buffer = Buffer.alloc(0);
  #next = 1;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => this.#received(chunk));
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        resolve();
        for (const waiting of this.#waiting) waiting.reject(new Error('the connection was closed'));
        this.#waiting = [];
      });
    });
  }

  static async connect(path: string): Promise<RawPeer> {
    const socket = connect(path);
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
    return new RawPeer(socket);
  }

  /** Connects as a producer that speaks the extension, or with other hello fields. */
  static async client(path: string, hello: Record<string, unknown> = {}): Promise<RawPeer> {
    const peer = await RawPeer.connect(path);
    const answer = await peer.request('hello', {
      mode: 'client',
      runtime_id: 'raw-client',
      extensions: ['reelhost.1'],
      ...hello,
    });
    if (answer.type !== 'hello_ok') throw new Error(`hello was answered with ${JSON.stringify(answer)}`);
    return peer;
  }

  /** Connects as an executor of the extension with some tasks. */
  static async worker(
    path: string,
    tasks: readonly string[],
    hello: Record<string, unknown> = {},
    declarations: Record<string, unknown> = {},
  ): Promise<RawPeer> {
    const peer = await RawPeer.client(path, { mode: 'worker', runtime_id: 'raw-worker', max_concurrency: 1, ...hello });
    await peer.request('register_tasks', { tasks, ...(Object.keys(declarations).length > 0 ? { declarations } : {}) });
    return peer;
  }

  /** Sends a message and resolves with the message that has its request id. */
  async request(
    type: string,
    fields: Record<string, unknown> = {},
    requestId = `q${this.#next++}`,
    timeoutMs?: number,
  ): Promise<Message> {
    this.send({ version: 1, type, request_id: requestId, ...fields });
    return await this.take((message) => message.request_id === requestId, timeoutMs);
  }

  send(message: Record<string, unknown>): void {
    this.sendText(JSON.stringify(message));
  }

  sendText(text: string): void {
    this.socket.write(frame(text));
  }

  /** The first message that matches, received already or still to come. */
  take(matches: ((message: Message) => boolean) | string, timeoutMs = 10_000): Promise<Message> {
    const test = typeof matches === 'string' ? (message: Message) => message.type === matches : matches;
    const at = this.inbox.findIndex(test);
    if (at >= 0) return Promise.resolve(this.inbox.splice(at, 1)[0] as Message);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting = this.#waiting.filter((each) => each !== waiting);
        reject(
          new Error(`nothing matched within ${timeoutMs} ms; inbox: ${JSON.stringify(this.inbox).slice(0, 1000)}`),
        );
      }, timeoutMs);
      const waiting: Waiting = {
        matches: test,
        resolve: (message) => {
          clearTimeout(timer);
          resolve(message);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      };
      this.#waiting.push(waiting);
    });
  }

  /** Takes the next `execute`. */
  async execute(): Promise<
    Message & { readonly ids: { readonly reservation_id: string; readonly execution_id: string } }
  > {
    const message = await this.take('execute');
    return {
      ...message,
      ids: { reservation_id: message['reservation_id'] as string, execution_id: message['execution_id'] as string },
    };
  }

  async close(): Promise<void> {
    this.socket.destroy();
    await this.closed;
  }

  #received(chunk: Buffer): void {
    this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk]);
    while (this.#buffer.length >= 4) {
      const length = this.#buffer.readUInt32BE(0);
      if (this.#buffer.length < 4 + length) return;
      const text = this.#buffer.toString('utf8', 4, 4 + length);
      this.#buffer = this.#buffer.subarray(4 + length);
      this.texts.push(text);
      this.#deliver(JSON.parse(text) as Message);
    }
  }

  #deliver(message: Message): void {
    const at = this.#waiting.findIndex((waiting) => waiting.matches(message));
    if (at < 0) {
      this.inbox.push(message);
      return;
    }
    this.#waiting.splice(at, 1)[0]?.resolve(message);
  }
}
