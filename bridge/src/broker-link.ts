/**
 * The broker as the core sees it: a session per job, a durable job per op. Everything it does may be said twice, so after a reconnect everything unsettled is
 * simply said again. A broker that accepts connections but does not answer counts as wedged within seconds.
 *
 * Order at each connection: watch the registry → close sessions of ours that no held job owns → report the broker as connected.
 */
import { BrokerClient, type JobHandle, RawJson } from '@reelhost/sdk';
import { type BrokerHealth, probeBroker, sweepSessions } from './broker-rounds.js';
import {
  codeOf,
  jobIdOf,
  LOST,
  outcomeOf,
  PASSING,
  recalledOutcome,
  submissionIdOf,
  USED,
  within,
} from './broker-words.js';
import { capabilitiesOf, type Input, type OpOutcome, taskOf } from './core/index.js';
import type { BrokerEffect } from './driver.js';
import type { Log } from './log.js';

/** The broker is asked this often whether it lives. */
const PROBE_EVERY_MS = 3_000;
/** Pause before a request that timed out is made again. */
const AGAIN_MS = 1_000;
/** Requests of ours are small; what takes longer is a broker that does not answer. */
const REQUEST_TIMEOUT_MS = 15_000;
/** The sweep may not keep a runner from its work for longer than this. */
const SWEEP_TIMEOUT_MS = 10_000;
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
  #isProbing = false;
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
        void this.#probeFor(effect.jobId, effect.epoch);
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
      case 'recallOp':
        void this.#recall(effect);
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
      const { owner, ownsSession, log } = this.#options;
      const swept = await within(sweepSessions(client, owner, ownsSession), SWEEP_TIMEOUT_MS);
      if (swept > 0) log('info', 'sessions.swept', { count: swept });
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

  /** The proof an accept needs. A broker that fails it is taken for unfit at once, so that the rejected job is not offered again to free slots that are none. */
  async #probeFor(jobId: string, epoch: number): Promise<void> {
    const health = await probeBroker(this.#client);
    if (health !== 'alive') this.#unfit(health);
    this.#options.emit({ kind: 'brokerProbed', jobId, epoch, alive: health === 'alive' });
  }

  #unfit(health: Exclude<BrokerHealth, 'alive'>): void {
    if (!this.#isReady || this.#isStopped) return;
    this.#isReady = false;
    this.#options.emit({ kind: 'brokerWedged', isFull: health === 'full' });
  }

  /** Tells a broker that can take work from one that cannot, both ways. */
  async #watchdog(): Promise<void> {
    if (this.#isProbing || this.#client?.isConnected !== true) return;
    this.#isProbing = true;
    const health = await probeBroker(this.#client);
    this.#isProbing = false;
    if (this.#isStopped || this.#client?.isConnected !== true) return;
    if (health !== 'alive') this.#unfit(health);
    else if (!this.#isReady) await this.#greet(this.#client);
  }

  async #openSession(effect: Extract<BrokerEffect, { kind: 'openSession' }>): Promise<void> {
    const { jobId, epoch, localId } = effect;
    const refuse = (why: 'used' | 'lost' | 'full' | 'unavailable', message: string): void =>
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
      if (PASSING.has(code)) {
        refuse('unavailable', code);
        this.#againSoon(() => this.#openSession(effect));
      } else if (code === 'disk_full') refuse('full', 'the disk of the runner is full');
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

  /** How an op of the past ended; what the broker cannot say now is said as «not known», which the gateway asks again. */
  async #recall(effect: Extract<BrokerEffect, { kind: 'recallOp' }>): Promise<void> {
    const { jobId, epoch, localId, opId, op } = effect;
    let outcome: OpOutcome | null = null;
    try {
      outcome = await recalledOutcome(this.#client, jobIdOf(localId, opId));
    } catch (error) {
      this.#options.log('warn', 'op.recall_failed', { jobId, opId, code: codeOf(error) });
    }
    this.#options.emit({ kind: 'opRecalled', jobId, epoch, opId, op, outcome });
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
        secrets: Object.keys(effect.secrets).length === 0 ? undefined : effect.secrets,
      });
    } catch (error) {
      const code = codeOf(error);
      if (PASSING.has(code)) {
        this.#againSoon(async () => {
          if (this.#awaited.get(key) === mark) await this.#enqueue(effect);
        });
        return;
      }
      if (LOST.has(code))
        settle({ ok: false, code: 'session_lost', message: `the workspace is gone (${code})`, retryable: true }, false);
      else
        settle(
          { ok: false, code, message: `the broker refused the op (${code})`, retryable: code === 'disk_full' },
          false,
        );
      return;
    }
    const progress = this.#followProgress(handle, { jobId, epoch, opId });
    try {
      const outcome = outcomeOf(await handle.outcome);
      // It ends with the job; its last value comes first.
      await progress;
      settle(outcome, handle.conflict);
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

  /** A broker that is merely slow gets the request again; after a lost connection, or a wedge, the core says everything again anyway. */
  #againSoon(request: () => Promise<void>): void {
    const timer = setTimeout(() => {
      if (!this.#isStopped && this.#isReady) void request();
    }, AGAIN_MS);
    timer.unref();
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
