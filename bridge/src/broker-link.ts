/**
 * The broker as the core sees it: a session per job, a durable job per op. Everything it does may be said twice, so after a reconnect everything unsettled is
 * simply said again. A broker that accepts connections but does not answer counts as wedged within seconds.
 *
 * Order at each connection: watch the registry → close sessions of ours that no held job owns → report the broker as connected.
 */
import { createHash } from 'node:crypto';
import { submissionJobId } from '@reelhost/protocol';
import { BrokerClient, BrokerError, type JobHandle, type JobOutcome, RawJson } from '@reelhost/sdk';
import { capabilitiesOf, type Input, type OpOutcome, taskOf } from './core/index.js';
import type { BrokerEffect } from './driver.js';
import type { Log } from './log.js';

/** The broker is asked this often whether it lives. */
const PROBE_EVERY_MS = 3_000;
/** A living broker answers within this time. */
const PROBE_TIMEOUT_MS = 4_000;
/** Queue of remote ops. */
const QUEUE = 'reelbolt';

/** What a link to the broker needs. */
export type BrokerLinkOptions = {
  readonly socketPath: string | undefined;
  /** Names our sessions at the broker; stable across restarts, different for another bridge. */
  readonly owner: string;
  readonly version: string;
  readonly emit: (input: Input) => void;
  readonly log: Log;
  readonly ownsSession: (localId: string) => boolean;
};

type OpKey = string;

/** See the head of the file. */
export class BrokerLink {
  readonly #options: BrokerLinkOptions;
  #client: BrokerClient | null = null;
  #isStopped = false;
  #isReady = false;
  #timer: NodeJS.Timeout | null = null;
  /** Ops whose outcome is awaited, with a mark of the newest enqueue. */
  readonly #awaited = new Map<OpKey, symbol>();

  constructor(options: BrokerLinkOptions) {
    this.#options = options;
  }

  /** Connects, for as long as it takes. */
  start(): void {
    void this.#connect();
    this.#timer = setInterval(() => void this.#watchdog(), PROBE_EVERY_MS);
  }

  /** Disconnects; jobs and sessions stay as they are. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#awaited.clear();
    await this.#client?.close();
  }

  /** Carries out one effect; what comes of it arrives as an input. */
  perform(effect: BrokerEffect): void {
    switch (effect.kind) {
      case 'probeBroker':
        void this.#probe().then((alive) =>
          this.#options.emit({ kind: 'brokerProbed', jobId: effect.jobId, epoch: effect.epoch, alive }),
        );
        return;
      case 'openSession':
        void this.#openSession(effect);
        return;
      case 'closeSession':
        void this.#closeSession(effect.localId, effect.graceMs);
        return;
      case 'enqueueOp':
        void this.#enqueue(effect);
        return;
      case 'cancelOp':
        this.#client?.cancel(jobIdOf(effect.localId, effect.opId)).catch(() => undefined);
        return;
    }
  }

  async #connect(): Promise<void> {
    while (!this.#isStopped) {
      try {
        const client = await BrokerClient.connect({
          socketPath: this.#options.socketPath,
          runtimeId: `bridge-${process.pid}`,
          software: `reelhost-bridge/${this.#options.version}`,
          connectTimeoutMs: Number.POSITIVE_INFINITY,
          requestTimeoutMs: REQUEST_TIMEOUT_MS,
          onEvent: (event) => this.#onEvent(event),
        });
        this.#client = client;
        if (this.#isStopped) {
          await client.close();
          return;
        }
        void this.#greet(client);
        for await (const runtimes of client.watchRegistry()) {
          this.#options.emit({ kind: 'registryChanged', capabilities: capabilitiesOf(runtimes) });
        }
      } catch (error) {
        this.#options.log('error', 'broker.refused', { code: codeOf(error) });
      }
      this.#lose();
      if (!this.#isStopped) await new Promise((resolve) => setTimeout(resolve, PROBE_EVERY_MS));
    }
  }

  #onEvent(event: string): void {
    if (this.#isStopped) return;
    if (event === 'client.disconnected') this.#lose();
    // The first connection is greeted when connect has returned.
    if (event === 'client.connected' && this.#client !== null) void this.#greet(this.#client);
  }

  /** The steps at the beginning of each connection. */
  async #greet(client: BrokerClient): Promise<void> {
    try {
      await within(this.#sweep(client), SWEEP_TIMEOUT_MS);
    } catch (error) {
      this.#options.log('warn', 'sweep.failed', { code: codeOf(error) });
    }
    if (!client.isConnected || this.#isStopped) return;
    this.#isReady = true;
    this.#options.emit({ kind: 'brokerConnected' });
  }

  #lose(): void {
    this.#isReady = false;
    if (!this.#isStopped) this.#options.emit({ kind: 'brokerLost' });
  }

  /** Sessions of ours that no held job owns are remains of an earlier life: they are closed before any new work is taken. */
  async #sweep(client: BrokerClient): Promise<void> {
    let swept = 0;
    let cursor: string | undefined;
    do {
      const page = await client.inspect('sessions', { state: 'open', limit: 500, cursor });
      for (const session of Array.isArray(page.data) ? page.data : []) {
        const { id, owner } = sessionFacts(session);
        if (id === null || owner !== this.#options.owner || this.#options.ownsSession(id)) continue;
        await client.closeSession(id, { graceMs: 0 });
        swept += 1;
      }
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    if (swept > 0) this.#options.log('info', 'sessions.swept', { count: swept });
  }

  async #probe(): Promise<boolean> {
    const client = this.#client;
    if (client === null || !client.isConnected) return false;
    try {
      await within(client.inspect('stats'), PROBE_TIMEOUT_MS);
      return true;
    } catch (error) {
      return error instanceof BrokerError && !PASSING.has(error.code);
    }
  }

  /** Tells wedged from alive, both ways. */
  async #watchdog(): Promise<void> {
    if (this.#client?.isConnected !== true) return;
    const alive = await this.#probe();
    if (this.#isStopped || this.#client?.isConnected !== true) return;
    if (!alive && this.#isReady) {
      this.#isReady = false;
      this.#options.emit({ kind: 'brokerWedged' });
    } else if (alive && !this.#isReady) {
      await this.#greet(this.#client);
    }
  }

  async #openSession(effect: Extract<BrokerEffect, { kind: 'openSession' }>): Promise<void> {
    const { jobId, epoch, localId } = effect;
    const refuse = (why: 'used' | 'lost' | 'unavailable', message: string): void =>
      this.#options.emit({ kind: 'sessionRefused', jobId, epoch, localId, why, message });
    if (this.#client === null) return;
    try {
      const labels = { owner: this.#options.owner, jobId, epoch: String(epoch) };
      const session = await this.#client.openSession({ sessionId: localId, task: taskOf(effect.jobType), labels });
      if (session.labels['jobId'] === jobId && session.labels['epoch'] === String(epoch)) {
        this.#options.emit({ kind: 'sessionOpened', jobId, epoch, localId, dir: session.dir });
        return;
      }
      refuse('used', 'the session belongs to an earlier assignment');
    } catch (error) {
      const code = codeOf(error);
      if (PASSING.has(code)) refuse('unavailable', code);
      else if (USED.has(code)) refuse('used', code);
      else refuse('lost', `the broker does not open the session (${code})`);
    }
  }

  async #closeSession(localId: string, graceMs: number): Promise<void> {
    if (this.#client === null) return;
    let gone = false;
    try {
      gone = (await this.#client.closeSession(localId, { graceMs })).stopped;
    } catch (error) {
      gone = codeOf(error) === 'session_not_found';
    }
    this.#options.emit({ kind: 'sessionClosed', localId, gone });
  }

  async #enqueue(effect: Extract<BrokerEffect, { kind: 'enqueueOp' }>): Promise<void> {
    const { jobId, epoch, opId, localId } = effect;
    if (this.#client === null) return;
    const key = `${localId}|${opId}`;
    const mark = Symbol(key);
    this.#awaited.set(key, mark);
    const settle = (outcome: OpOutcome, conflict: boolean): void => {
      if (this.#awaited.get(key) !== mark) return;
      this.#awaited.delete(key);
      this.#options.emit({ kind: 'opSettled', jobId, epoch, opId, outcome, conflict });
    };
    let handle: JobHandle;
    try {
      handle = await this.#client.enqueue({
        task: taskOf(effect.jobType),
        args: new RawJson(effect.argsText),
        sessionId: localId,
        submissionId: submissionIdOf(localId, opId),
        timeoutMs: effect.timeoutMs,
        queue: QUEUE,
        secrets: effect.secrets,
      });
    } catch (error) {
      const code = codeOf(error);
      if (PASSING.has(code)) return;
      if (LOST.has(code))
        settle({ ok: false, code: 'session_lost', message: `the workspace is gone (${code})`, retryable: true }, false);
      else settle({ ok: false, code, message: `the broker refused the op (${code})`, retryable: false }, false);
      return;
    }
    void this.#followProgress(handle, { jobId, epoch, opId });
    try {
      settle(outcomeOf(await handle.outcome), handle.conflict);
    } catch (error) {
      // What passes is said again when the broker is back.
      const code = codeOf(error);
      if (!PASSING.has(code))
        settle(
          { ok: false, code: 'executor_lost', message: `the outcome is not known (${code})`, retryable: true },
          false,
        );
    }
  }

  async #followProgress(handle: JobHandle, at: { jobId: string; epoch: number; opId: string }): Promise<void> {
    try {
      for await (const progress of handle.progress()) {
        if (this.#isStopped) return;
        this.#options.emit({ kind: 'opProgressed', ...at, progress });
      }
    } catch {
      // The outcome tells what happened.
    }
  }
}

/** Requests of ours are small; what takes longer is a broker that does not answer. */
const REQUEST_TIMEOUT_MS = 15_000;
/** The sweep may not keep a runner from its work for longer than this. */
const SWEEP_TIMEOUT_MS = 10_000;

/** Errors that pass: what they hit is said again after the next connection. */
const PASSING: ReadonlySet<string> = new Set([
  'unavailable',
  'connection_closed',
  'not_running',
  'connect_timeout',
  'request_timeout',
  'unknown_outcome',
  'client_closed',
  'shutting_down',
]);
/** The session id was used up by an earlier epoch. */
const USED: ReadonlySet<string> = new Set(['session_closed', 'session_conflict']);
/** The session of a running job is gone. */
const LOST: ReadonlySet<string> = new Set(['session_not_found', 'session_closed', 'session_lost']);

/** The submission id of a remote op (D1): the same op of the same session is the same local job, for ever. */
export function submissionIdOf(localId: string, opId: string): string {
  return `op:${createHash('sha256').update(`${localId}|${opId}`, 'utf8').digest('hex')}`;
}

function jobIdOf(localId: string, opId: string): string {
  return submissionJobId(submissionIdOf(localId, opId));
}

function outcomeOf(outcome: JobOutcome): OpOutcome {
  if (outcome.state === 'completed') return { ok: true, resultText: outcome.resultJson };
  const { type, message, retryable } = outcome.error;
  return { ok: false, code: type, message, retryable };
}

function sessionFacts(session: unknown): { id: string | null; owner: string | null } {
  if (typeof session !== 'object' || session === null || !('session_id' in session)) return { id: null, owner: null };
  const labels =
    'labels' in session && typeof session.labels === 'object' && session.labels !== null ? session.labels : {};
  const owner = 'owner' in labels && typeof labels.owner === 'string' ? labels.owner : null;
  return { id: typeof session.session_id === 'string' ? session.session_id : null, owner };
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'error';
}

/** @throws BrokerError `request_timeout` */
async function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new BrokerError('request_timeout', `no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
    promise.catch(() => undefined);
  }
}
