/**
 * Who dies × how × what was going on, each cell against a small world: a gateway with leases and unanswered ops, a broker whose journal never runs an op twice, and a
 * ledger that counts executions. Time is injected, so the cells of a minute take a millisecond.
 */
import type { RunnerMessage } from '@reelhost/bridge-protocol';
import { describe, expect, it } from 'vitest';
import { JOB, Rig } from '../../tests/rig.js';

type Victim = 'bridge' | 'broker' | 'executor' | 'gateway' | 'network';
type Death = 'SIGKILL' | 'SIGSTOP 10 s' | 'SIGSTOP 60 s' | 'cut' | 'half-open';
type Moment = 'no op' | 'op running' | 'result not yet sent' | 'complete not yet sent';

const OP_MS = 5_000;

/** The remote and the local side around one bridge, in the simplest form that keeps their promises. */
class World {
  rig: Rig;
  readonly ledger: string[] = [];
  /** Ends of executions, by op. */
  readonly #running = new Map<string, number>();
  readonly #journal = new Map<string, { ok: boolean; code: string }>();
  readonly answers = new Map<string, { ok: boolean; code: string }>();
  readonly asked: { opId: string; op: string }[] = [];
  leaseUntil = 0;
  jobState: 'Queued' | 'Running' | 'Succeeded' | 'Failed' | 'Cancelled' | 'Expired' = 'Queued';
  sentAfterLoss = 0;
  #seen = 0;
  #effects = 0;
  /** Nothing passes between gateway and bridge. */
  netUntil = 0;
  gatewayUntil = 0;
  brokerUntil = 0;
  brokerAlive = true;
  executorUntil = 0;
  dropping: string | null = null;

  constructor() {
    this.rig = new Rig();
    this.rig.input({ kind: 'brokerConnected' });
    this.rig.brokerUp();
    this.run(1_000);
    this.leaseUntil = this.rig.now + 45_000;
    this.rig.assign();
    this.run(100);
    if (this.jobState !== 'Running') throw new Error('the job was not accepted');
  }

  get #gatewayWorks(): boolean {
    return this.rig.now >= this.netUntil && this.rig.now >= this.gatewayUntil;
  }

  /** The engine asks for an op. */
  ask(opId: string, op = 'run'): void {
    this.asked.push({ opId, op });
    if (this.#gatewayWorks && this.rig.state.link.phase === 'open') this.rig.op(opId, op, { timeoutSec: 300 });
  }

  /** A millisecond clock for everybody. */
  run(ms: number): void {
    const end = this.rig.now + ms;
    while (this.rig.now < end) {
      this.rig.advance(50);
      this.turn();
    }
  }

  /** The bridge's process stands still; the world goes on. */
  freezeBridge(ms: number): void {
    const end = this.rig.now + ms;
    while (this.rig.now < end) {
      this.rig.now += 50;
      this.#execute();
      this.#reap();
    }
    this.rig.input({ kind: 'timePassed' });
    this.turn();
  }

  /** kill -9 and a new process `afterMs` later, with what was written down. */
  restartBridge(afterMs: number): void {
    const next = this.rig.reborn();
    const end = next.now + afterMs;
    while (next.now < end) {
      next.now += 50;
      this.rig.now = next.now;
      this.#execute();
      this.#reap();
    }
    this.rig = next;
    this.#seen = 0;
    this.#effects = 0;
    next.input({ kind: 'timePassed' });
    if (this.brokerAlive) next.brokerUp();
    this.turn();
  }

  killBroker(downMs: number): void {
    this.brokerAlive = false;
    this.brokerUntil = this.rig.now + downMs;
    this.rig.input({ kind: 'brokerLost' });
  }

  /** What no broker may do: for the negative control. */
  forgetJournal(): void {
    this.#journal.clear();
  }

  killExecutor(): void {
    for (const opId of this.#running.keys()) this.#journal.set(opId, { ok: false, code: 'executor_lost' });
    this.#running.clear();
    this.#push();
  }

  cut(downMs = 0): void {
    this.netUntil = this.rig.now + downMs;
    this.#seen = this.rig.sent.length;
    this.rig.closed(1006);
  }

  turn(): void {
    if (!this.brokerAlive && this.rig.now >= this.brokerUntil) {
      this.brokerAlive = true;
      this.rig.brokerUp();
    }
    this.#execute();
    this.#reap();
    for (let again = true; again; ) {
      again = false;
      for (; this.#effects < this.rig.effects.length; this.#effects += 1) {
        again = true;
        this.#perform(this.rig.effects[this.#effects]);
      }
    }
    for (; this.#gatewayWorks && this.#seen < this.rig.sent.length; this.#seen += 1)
      this.#read(this.rig.sent[this.#seen]);
  }

  #perform(effect: (typeof this.rig.effects)[number] | undefined): void {
    if (effect === undefined) return;
    const brokerAnswers = this.brokerAlive && this.rig.now >= this.brokerUntil;
    switch (effect.kind) {
      case 'dial':
        if (this.#gatewayWorks) this.rig.input({ kind: 'linkUpgraded', generation: effect.generation, skewMs: 0 });
        else
          this.rig.input({
            kind: 'linkFailed',
            generation: effect.generation,
            message: 'refused',
            rateLimitedSec: null,
          });
        return;
      case 'sendHello':
        if (this.#gatewayWorks) this.#welcome(effect.running);
        return;
      case 'probeBroker':
        this.rig.input({ kind: 'brokerProbed', jobId: effect.jobId, epoch: effect.epoch, alive: brokerAnswers });
        return;
      case 'openSession':
        if (brokerAnswers) this.rig.sessionOpened(effect.jobId, effect.epoch, effect.localId);
        return;
      case 'closeSession':
        if (!brokerAnswers) return;
        for (const opId of this.#running.keys()) this.#journal.set(opId, { ok: false, code: 'cancelled' });
        this.#running.clear();
        this.rig.sessionGone(effect.localId);
        return;
      case 'enqueueOp': {
        if (!brokerAnswers) return;
        const op = this.asked.find((one) => one.opId === effect.opId)?.op ?? 'run';
        if (!this.#journal.has(effect.opId) && !this.#running.has(effect.opId)) {
          if (op === 'close') this.#journal.set(effect.opId, { ok: true, code: '' });
          else {
            this.ledger.push(effect.opId);
            this.#running.set(effect.opId, this.rig.now + OP_MS);
          }
        }
        this.#push();
        return;
      }
      default:
        return;
    }
  }

  #welcome(running: readonly { jobId: string; leaseEpoch: number }[]): void {
    const resumed = running.filter((job) => job.jobId === JOB && job.leaseEpoch === 1 && this.jobState === 'Running');
    this.rig.gateway({
      type: 'welcome',
      payload: {
        runnerId: 'r',
        kind: 'Desktop',
        orgId: 'o',
        protocolVersion: '1.0',
        heartbeatSec: 15,
        deadAfterSec: 45,
        maxInlineBytes: 4_194_304,
        gatewayInstance: 'g',
        serverTime: '2026-07-01T00:00:00Z',
        resumed: [...resumed],
      },
    });
    for (const job of running) if (!resumed.includes(job)) this.#cancel('lease_lost');
    if (resumed.length === 0) return;
    for (const { opId, op } of this.asked) if (!this.answers.has(opId)) this.rig.op(opId, op, { timeoutSec: 300 });
  }

  #cancel(reason: 'lease_lost'): void {
    this.rig.gateway({ type: 'cancel', jobId: JOB, payload: { reason, graceSec: 10 } });
  }

  /** What reaches the gateway. */
  #read(sent: { message: RunnerMessage; generation: number } | undefined): void {
    if (sent === undefined || sent.generation !== this.rig.generation) return;
    const { message } = sent;
    if (message.type === this.dropping) {
      this.dropping = null;
      return;
    }
    if (['op.response', 'progress', 'fail'].includes(message.type) && this.jobState !== 'Running')
      this.sentAfterLoss += 1;
    switch (message.type) {
      case 'accept':
        this.jobState = 'Running';
        return;
      case 'heartbeat': {
        const listed = message.payload.running.some((job) => job.jobId === JOB);
        const ok = listed && this.jobState === 'Running' && this.rig.now < this.leaseUntil;
        if (ok) this.leaseUntil = this.rig.now + 45_000;
        this.rig.answer(listed ? [{ jobId: JOB, ok }] : []);
        return;
      }
      case 'op.response':
        this.answers.set(message.payload.opId, {
          ok: message.payload.ok,
          code: message.payload.ok ? '' : message.payload.error.code,
        });
        return;
      case 'complete':
        if (this.jobState === 'Running')
          this.jobState = message.payload.outcome === 'succeeded' ? 'Succeeded' : 'Cancelled';
        return;
      case 'fail':
        if (this.jobState === 'Running') this.jobState = 'Failed';
        return;
      default:
        return;
    }
  }

  #execute(): void {
    if (this.rig.now < this.executorUntil) return;
    for (const [opId, end] of this.#running) {
      if (this.rig.now < end) continue;
      this.#running.delete(opId);
      this.#journal.set(opId, { ok: true, code: '' });
    }
    this.#push();
  }

  /** The broker tells the bridge what it waits for. */
  #push(): void {
    const op = this.rig.state.jobs.get(JOB)?.op;
    if (op?.state !== 'enqueued' || !this.brokerAlive || this.rig.now < this.brokerUntil) return;
    const outcome = this.#journal.get(op.opId);
    if (outcome === undefined) return;
    if (outcome.ok) this.rig.settled(op.opId);
    else this.rig.failedOp(op.opId, outcome.code, true);
  }

  #reap(): void {
    if (this.jobState === 'Running' && this.rig.now >= this.leaseUntil) this.jobState = 'Expired';
  }
}

/** A frozen peer delays what is on its way, everything else loses it. */
function delays(victim: Victim, death: Death): boolean {
  return death.startsWith('SIGSTOP') && (victim === 'bridge' || victim === 'gateway' || victim === 'network');
}

/** Brings the world to the moment; the death follows at once. `isDelayed`: it falls just before the message leaves, else the message is lost. */
function arrange(world: World, moment: Moment, isDelayed: boolean): void {
  world.ask('op-0');
  world.run(OP_MS + 500);
  expect(world.answers.get('op-0')).toMatchObject({ ok: true });
  switch (moment) {
    case 'no op':
      return;
    case 'op running':
      world.ask('op-1');
      world.run(1_000);
      return;
    case 'result not yet sent':
      world.ask('op-1');
      if (!isDelayed) world.dropping = 'op.response';
      world.run(isDelayed ? OP_MS - 100 : OP_MS + 100);
      break;
    case 'complete not yet sent':
      world.ask('op-c', 'close');
      if (!isDelayed) world.dropping = 'complete';
      if (!isDelayed) world.run(50);
      break;
  }
  // What was lost was lost with its connection.
  if (!isDelayed) world.cut(500);
}

function strike(world: World, victim: Victim, death: Death): void {
  const ms = death === 'SIGSTOP 10 s' ? 10_000 : death === 'SIGSTOP 60 s' ? 60_000 : 0;
  switch (victim) {
    case 'bridge':
      if (death === 'SIGKILL') world.restartBridge(2_000);
      else if (ms > 0) world.freezeBridge(ms);
      else world.cut();
      return;
    case 'broker':
      if (death === 'SIGKILL' || death === 'cut') world.killBroker(1_000);
      else {
        world.brokerUntil = world.rig.now + (ms === 0 ? 60_000 : ms);
        world.run(7_000);
        world.rig.input({ kind: 'brokerWedged', isFull: false });
        world.run(Math.max(0, world.brokerUntil - world.rig.now) + 3_000);
        world.rig.brokerUp();
      }
      return;
    case 'executor':
      if (death === 'SIGKILL' || death === 'cut') world.killExecutor();
      else world.executorUntil = world.rig.now + (ms === 0 ? 60_000 : ms);
      return;
    case 'gateway':
    case 'network':
      if (death === 'SIGKILL' || death === 'cut') world.cut(death === 'SIGKILL' ? 3_000 : 0);
      else world.netUntil = world.rig.now + (ms === 0 ? 60_000 : ms);
      return;
  }
}

const victims: Victim[] = ['bridge', 'broker', 'executor', 'gateway', 'network'];
const deaths: Death[] = ['SIGKILL', 'SIGSTOP 10 s', 'SIGSTOP 60 s', 'cut', 'half-open'];
const moments: Moment[] = ['no op', 'op running', 'result not yet sent', 'complete not yet sent'];

/** The lease cannot outlive these: nobody renews it for longer than it lasts. */
function losesLease(victim: Victim, death: Death): boolean {
  if (victim === 'broker' || victim === 'executor') return false;
  if (victim === 'bridge') return death === 'SIGSTOP 60 s';
  return death === 'SIGSTOP 60 s' || death === 'half-open';
}

const cells = victims.flatMap((victim) =>
  deaths.flatMap((death) => moments.map((moment) => ({ victim, death, moment }))),
);

describe('death matrix [RB-RES-01] [RB-RES-03] [RB-IDM-03] [RB-FEN-04]', () => {
  it.each(cells)('$victim × $death × $moment', ({ victim, death, moment }) => {
    const world = new World();
    arrange(world, moment, delays(victim, death));
    strike(world, victim, death);
    world.run(60_000);
    // Never twice, whatever died.
    expect(world.ledger).toEqual([...new Set(world.ledger)]);
    // Nothing of a lost job is said after the loss.
    expect(world.sentAfterLoss).toBe(0);
    if (losesLease(victim, death)) {
      expect(world.rig.state.jobs.size).toBe(0);
      expect(world.jobState).toBe('Expired');
      expect(world.rig.state.teardowns.size).toBe(0);
      return;
    }
    if (moment === 'op running' && victim === 'executor' && (death === 'SIGKILL' || death === 'cut')) {
      expect(world.answers.get('op-1')).toEqual({ ok: false, code: 'executor_lost' });
    } else if (moment === 'op running' || moment === 'result not yet sent') {
      world.run(victim === 'executor' ? 45_000 : 0);
      expect(world.answers.get('op-1')).toEqual({ ok: true, code: '' });
      expect(world.ledger).toEqual(['op-0', 'op-1']);
    } else if (moment === 'complete not yet sent') {
      expect(world.answers.get('op-c')).toEqual({ ok: true, code: '' });
      expect(world.jobState).toBe('Succeeded');
      expect(world.rig.state.jobs.size).toBe(0);
      return;
    }
    // And the session goes on.
    world.ask('op-2');
    world.run(OP_MS + 15_000);
    expect(world.answers.get('op-2')).toEqual({ ok: true, code: '' });
    world.ask('op-c', 'close');
    world.run(1_000);
    expect(world.jobState).toBe('Succeeded');
  });

  it('would notice a second run: a broker that forgets what it ran fails the cell', () => {
    const world = new World();
    arrange(world, 'result not yet sent', false);
    world.forgetJournal();
    world.run(20_000);
    expect(world.ledger).toEqual(['op-0', 'op-1', 'op-1']);
  });

  it('has every cell', () => {
    expect(cells).toHaveLength(5 * 5 * 4);
  });
});
