/**
 * A bridge core under a hand-driven clock: tests feed inputs, advance time, and read what was sent. Every message it sends is read back the way a gateway
 * would read it, so a message that breaks the specification fails the test by itself.
 */
import { type GatewayDraft, type RunnerMessage, readInbound, writeOutbound } from '@reelhost/bridge-protocol';
import {
  type BridgeState,
  type Capabilities,
  DEFAULT_SETTINGS,
  type Effect,
  type Input,
  initialState,
  type Job,
  type JournalRecord,
  nextWakeAt,
  type OpOutcome,
  type Settings,
  step,
} from '../src/core/index.js';

export const JOB = '00000000-0000-4000-8000-00000000000a';
export const SESSION = '00000000-0000-4000-8000-00000000000b';
export const TOKEN = 'FIXTURE.job.token';

export const MEDIA: Capabilities = {
  jobTypes: ['video.analyze.extract', 'video.compile'],
  container: 'none',
  runtimeImageDigest: null,
  ffmpegVersion: '7.0.2',
  fontsetVersion: '2026.07',
  maxOutputBytes: 4 * 1024 ** 3,
};

type WithoutEnvelope<T> = T extends { type: infer K; payload: infer P }
  ? { type: K; payload: P; jobId?: string; sessionId?: string }
  : never;
export type GatewaySays = WithoutEnvelope<GatewayDraft>;

export class Rig {
  now = 1_000_000;
  /** The gateway answers each heartbeat at once. */
  answering = false;
  random = 0.5;
  state: BridgeState;
  readonly effects: Effect[] = [];
  readonly records: JournalRecord[] = [];
  readonly sent: { message: RunnerMessage; at: number; generation: number }[] = [];
  #ids = 0;

  constructor(settings: Partial<Settings> = {}, restored: { jobs?: Job[]; paused?: boolean } = {}) {
    const all = {
      ...DEFAULT_SETTINGS,
      agentVersion: '0.1.0',
      kind: 'device' as const,
      instance: '00000000-0000-4000-8000-000000000000',
      ...settings,
    };
    this.state = initialState(all, { jobs: restored.jobs ?? [], paused: restored.paused ?? false }, this.now);
  }

  /** One step. */
  input(input: Input): this {
    const result = step(this.state, input, this.now, this.random);
    this.state = result.state;
    this.records.push(...result.records);
    for (const effect of result.effects) {
      this.effects.push(effect);
      if (effect.kind !== 'send') continue;
      const inbound = readInbound(effect.text, 'runnerToGateway');
      if (inbound.kind !== 'message') throw new Error(`a gateway could not read ${effect.text.slice(0, 200)}`);
      this.sent.push({ message: inbound.message, at: this.now, generation: effect.generation });
    }
    const hasBeaten = result.effects.some(
      (effect) => effect.kind === 'send' && effect.text.includes('"type":"heartbeat"'),
    );
    return hasBeaten && this.answering ? this.answer() : this;
  }

  /** Lets time pass, waking the core whenever it asked to be woken. */
  advance(ms: number): this {
    const end = this.now + ms;
    for (;;) {
      const wake = Math.max(this.now + 1, Math.ceil(nextWakeAt(this.state)));
      if (wake > end) break;
      this.now = wake;
      this.input({ kind: 'timePassed' });
    }
    this.now = end;
    return this.input({ kind: 'timePassed' });
  }

  /** The process does not run at all for a while; the next input finds a later time. */
  sleep(ms: number): this {
    this.now += ms;
    return this;
  }

  /** The core of a new process with what this one has written down, at the same moment. */
  reborn(): Rig {
    const rows = new Map<string, Job>();
    for (const record of this.records) {
      if (record.kind === 'putJob') rows.set(record.job.jobId, record.job);
      else rows.delete(record.jobId);
    }
    const jobs = [...rows.values()].map((job) => ({
      ...job,
      op: null,
      lastResponse: null,
      session: job.session === null ? null : { ...job.session, state: 'reopening' as const, dir: '' },
      ending: job.ending === null ? null : { ...job.ending, sent: null },
    }));
    const next = new Rig({}, { jobs });
    next.now = this.now;
    next.records.push(...[...rows.values()].map((job) => ({ kind: 'putJob' as const, job })));
    return next;
  }

  get generation(): number {
    return this.state.generation;
  }

  #newId(): string {
    this.#ids += 1;
    return `gw-${this.#ids}`;
  }

  /** A message of the gateway, written and read as on the wire. */
  gateway(says: GatewaySays, id = this.#newId(), generation = this.generation): this {
    const written = writeOutbound({ ...says, id } as GatewayDraft, 'gatewayToRunner');
    if (!written.ok) throw new Error(`the test's gateway breaks the specification: ${written.detail}`);
    const inbound = readInbound(written.text, 'gatewayToRunner');
    if (inbound.kind !== 'message') throw new Error('unreadable');
    return this.input({ kind: 'messageReceived', generation, message: inbound.message });
  }

  /** A broker with the media executor. */
  brokerUp(capabilities: Capabilities = MEDIA): this {
    return this.input({ kind: 'brokerConnected' }).input({ kind: 'registryChanged', capabilities });
  }

  /** From a dial to the welcome. */
  welcome(
    resumed: { jobId: string; leaseEpoch: number }[] = [],
    more: { minAgentVersion?: string; heartbeatSec?: number; maxInlineBytes?: number } = {},
  ): this {
    this.input({ kind: 'linkUpgraded', generation: this.generation, skewMs: 0 });
    return this.gateway({
      type: 'welcome',
      payload: {
        runnerId: 'runner-1',
        kind: 'Desktop',
        orgId: 'org-1',
        protocolVersion: '1.0',
        heartbeatSec: 15,
        deadAfterSec: 45,
        maxInlineBytes: 4_194_304,
        gatewayInstance: 'gw-a',
        serverTime: '2026-07-01T00:00:00Z',
        resumed,
        ...more,
      },
    });
  }

  /** Broker and gateway are there. */
  connected(): this {
    return this.brokerUp().welcome();
  }

  assign(
    over: {
      jobId?: string;
      leaseEpoch?: number;
      jobType?: string;
      timeoutSec?: number;
      requires?: object;
      maxOutputBytes?: number;
      idleTimeoutSec?: number;
    } = {},
    id = 'assign-1',
  ): this {
    return this.gateway(
      {
        type: 'assign',
        jobId: over.jobId ?? JOB,
        payload: {
          jobType: over.jobType ?? 'video.compile',
          leaseEpoch: over.leaseEpoch ?? 1,
          jobToken: TOKEN,
          attempt: 1,
          timeoutSec: over.timeoutSec ?? 3_600,
          limits: { maxOutputBytes: over.maxOutputBytes ?? 1_000, idleTimeoutSec: over.idleTimeoutSec ?? 1_800 },
          requires: { ...over.requires },
          spec: { executionId: 'e', stepId: 's', mode: 'Reencode' },
          orgId: 'org-1',
        },
      },
      id,
    );
  }

  /** An assign that the broker lets through. */
  held(over: Parameters<Rig['assign']>[0] = {}): this {
    this.assign(over);
    return this.input({ kind: 'brokerProbed', jobId: over?.jobId ?? JOB, epoch: over?.leaseEpoch ?? 1, alive: true });
  }

  op(
    opId: string,
    op = 'ffmpeg',
    over: { args?: Record<string, unknown>; timeoutSec?: number; sessionId?: string; jobId?: string } = {},
  ): this {
    return this.gateway({
      type: 'op.request',
      jobId: over.jobId ?? JOB,
      sessionId: over.sessionId ?? SESSION,
      payload: { opId, op, args: over.args ?? {}, timeoutSec: over.timeoutSec ?? 60 },
    });
  }

  /** The broker opens the session of the held job. */
  sessionOpened(jobId = JOB, epoch = 1, localId = SESSION): this {
    return this.input({ kind: 'sessionOpened', jobId, epoch, localId, dir: `/sessions/${localId}` });
  }

  /** An op that the broker has taken. */
  running(opId: string, op = 'ffmpeg', over: Parameters<Rig['op']>[2] = {}): this {
    this.op(opId, op, over);
    if (this.state.jobs.get(JOB)?.session?.state === 'opening') this.sessionOpened();
    return this;
  }

  settled(opId: string, resultText = '{"exitCode":0}', epoch = 1): this {
    return this.input({
      kind: 'opSettled',
      jobId: JOB,
      epoch,
      opId,
      outcome: { ok: true, resultText },
      conflict: false,
    });
  }

  /** What the broker knows of an op of the past. */
  recalled(opId: string, outcome: OpOutcome | null, op = 'ffmpeg'): this {
    return this.input({ kind: 'opRecalled', jobId: JOB, epoch: 1, opId, op, outcome });
  }

  failedOp(opId: string, code: string, retryable = false): this {
    return this.input({
      kind: 'opSettled',
      jobId: JOB,
      epoch: 1,
      opId,
      outcome: { ok: false, code, message: code, retryable },
      conflict: false,
    });
  }

  /** The gateway answers the oldest heartbeat. */
  answer(leases: { jobId: string; ok: boolean }[] = []): this {
    return this.gateway({ type: 'heartbeat', payload: { serverTime: '2026-07-01T00:00:00Z', leases } });
  }

  /** The connection ends. */
  closed(code = 1006): this {
    return this.input({ kind: 'linkClosed', generation: this.generation, code, reason: '' });
  }

  /** The local session is gone. */
  sessionGone(localId = SESSION, gone = true): this {
    return this.input({ kind: 'sessionClosed', localId, gone });
  }

  /** The messages of one type sent so far. */
  of<T extends RunnerMessage['type']>(type: T): Extract<RunnerMessage, { type: T }>[] {
    return this.sent
      .map((one) => one.message)
      .filter((message): message is Extract<RunnerMessage, { type: T }> => message.type === type);
  }

  /** From now on the gateway answers each heartbeat at once. */
  answered(): this {
    this.answering = true;
    return this;
  }

  /** Types sent since the last call of `mark`. */
  get types(): string[] {
    return this.sent.slice(this.#mark).map((one) => one.message.type);
  }

  mark(): this {
    this.#mark = this.sent.length;
    this.#effectMark = this.effects.length;
    return this;
  }
  #mark = 0;
  #effectMark = 0;

  /** Effects of one kind since `mark`. */
  did<K extends Effect['kind']>(kind: K): Extract<Effect, { kind: K }>[] {
    return this.effects
      .slice(this.#effectMark)
      .filter((effect): effect is Extract<Effect, { kind: K }> => effect.kind === kind);
  }

  /** Milliseconds until the next dial; 0 when it is being dialled. */
  get redialIn(): number {
    const { link } = this.state;
    return link.phase === 'down' ? link.redialAt - this.now : 0;
  }
}
