/** Starts the built broker as a process of its own, in a directory of its own, and ends it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url));

/** A directory for one test: state, socket and everything else of it. */
export class BrokerHome {
  readonly directory = mkdtempSync(join(tmpdir(), 'rhb-'));
  readonly stateDir = join(this.directory, 'state');
  readonly socket = join(this.directory, 's.sock');
  readonly running = new Set<BrokerProcess>();

  /** Starts a broker and waits until it is ready. */
  async start(
    extra: readonly string[] = [],
    options: { readonly prefix?: readonly string[]; readonly env?: Record<string, string> } = {},
  ): Promise<BrokerProcess> {
    const broker = this.spawn(extra, options);
    await broker.event('broker.ready');
    return broker;
  }

  /** Starts a broker without waiting. */
  spawn(
    extra: readonly string[] = [],
    options: { readonly prefix?: readonly string[]; readonly env?: Record<string, string> } = {},
  ): BrokerProcess {
    const script = `const { run } = await import(${JSON.stringify(MAIN)}); process.exitCode = await run(process.argv.slice(1));`;
    const argv = [
      ...(options.prefix ?? []),
      process.execPath,
      '--input-type=module',
      '-e',
      script,
      '--',
      ...(extra.includes('--socket') ? [] : ['--socket', this.socket]),
      ...(extra.includes('--state-dir') ? [] : ['--state-dir', this.stateDir]),
      '--log-level',
      'debug',
      ...extra,
    ];
    const child = spawn(argv[0] as string, argv.slice(1), {
      stdio: ['ignore', 'inherit', 'pipe'],
      env: { ...process.env, ...options.env },
    });
    const broker = new BrokerProcess(child);
    this.running.add(broker);
    return broker;
  }

  /** Kills what still runs and removes the directory. */
  async remove(): Promise<void> {
    for (const broker of this.running) await broker.kill();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export interface LogLine {
  readonly event: string;
  readonly [field: string]: unknown;
}

export class BrokerProcess {
  readonly child: ChildProcess;
  readonly lines: LogLine[] = [];
  /** Text on stderr that was no log line. */
  readonly noise: string[] = [];
  readonly exited: Promise<number | null>;
  #waiting: {
    readonly event: string;
    readonly resolve: (line: LogLine) => void;
    readonly reject: (error: Error) => void;
  }[] = [];

  constructor(child: ChildProcess) {
    this.child = child;
    const reader = createInterface({ input: child.stderr as NodeJS.ReadableStream });
    reader.on('line', (text) => this.#line(text));
    this.exited = new Promise((resolve) => {
      child.once('close', (code) => {
        for (const waiting of this.#waiting) {
          waiting.reject(
            new Error(
              `the broker ended with ${code} before ${waiting.event}: ${this.noise.join('\n')} ${JSON.stringify(this.lines.at(-1))}`,
            ),
          );
        }
        this.#waiting = [];
        resolve(code);
      });
    });
  }

  /** Memory it holds at the moment. */
  get residentBytes(): number {
    const line = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${this.pid}/status`, 'utf8'));
    return Number(line?.[1] ?? 0) * 1024;
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** The first log line with this event, logged already or still to come. */
  event(event: string, timeoutMs = 15_000): Promise<LogLine> {
    const found = this.lines.find((line) => line.event === event);
    if (found !== undefined) return Promise.resolve(found);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no ${event} within ${timeoutMs} ms`)), timeoutMs);
      this.#waiting.push({
        event,
        resolve: (line) => {
          clearTimeout(timer);
          resolve(line);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      });
    });
  }

  /** SIGTERM, and the exit code. */
  async stop(): Promise<number | null> {
    this.child.kill('SIGTERM');
    return await this.exited;
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL');
    await this.exited;
  }

  #line(text: string): void {
    let line: LogLine;
    try {
      line = JSON.parse(text) as LogLine;
    } catch {
      this.noise.push(text);
      return;
    }
    this.lines.push(line);
    const matching = this.#waiting.filter((waiting) => waiting.event === line.event);
    this.#waiting = this.#waiting.filter((waiting) => waiting.event !== line.event);
    for (const waiting of matching) waiting.resolve(line);
  }
}
