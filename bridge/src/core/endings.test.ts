import { describe, expect, it } from 'vitest';
import { JOB, Rig, SESSION } from '../../tests/rig.js';

const cancel = (rig: Rig, reason: 'user' | 'lease_lost' | 'revoked' = 'user', graceSec = 10): Rig =>
  rig.gateway({ type: 'cancel', jobId: JOB, payload: { reason, graceSec } });

describe('cancel', () => {
  it('starts the kill at once, and complete{cancelled} follows when the work has stopped [RB-CAN-01] [RB-CAN-03]', () => {
    const rig = cancel(new Rig().connected().held().running('op-1').mark());
    expect(rig.did('closeSession')).toMatchObject([{ localId: SESSION, graceMs: 8_000 }]);
    expect(rig.types).toEqual([]);
    rig.advance(700).sessionGone();
    expect(rig.of('complete')).toMatchObject([{ payload: { outcome: 'cancelled', leaseEpoch: 1 } }]);
  });

  it.each(['user', 'lease_lost', 'revoked'] as const)('is answered whatever its reason: %s', (reason) => {
    expect(cancel(new Rig().connected().held().running('op-1'), reason).sessionGone().of('complete')).toHaveLength(1);
  });

  it('is answered before its deadline although executor and broker hang, and the slot stays taken [RB-CAN-03]', () => {
    const rig = cancel(
      new Rig().connected().answered().held().running('op-1').input({ kind: 'brokerWedged', isFull: false }).mark(),
    );
    rig.advance(9_999);
    expect(rig.of('complete')).toHaveLength(1);
    expect(rig.sent.find((one) => one.message.type === 'complete')?.at).toBeLessThan(1_000_000 + 10_000);
    rig.brokerUp();
    expect(rig.types).toEqual(['complete']);
    rig.sessionGone();
    expect(rig.types).toEqual(['complete', 'ready']);
    expect(rig.of('ready').at(-1)?.payload.freeSlots).toBe(1);
  });

  it('obeys a shorter grace', () => {
    const rig = cancel(new Rig().connected().held().running('op-1'), 'user', 3).advance(2_999);
    expect(rig.of('complete')).toHaveLength(1);
    expect(rig.did('closeSession').at(0)?.graceMs).toBe(1_000);
  });

  it('of a job without a session, and of one that is only offered, is answered at once', () => {
    expect(cancel(new Rig().connected().held()).of('complete')).toHaveLength(1);
    const offered = cancel(new Rig().connected().assign());
    offered.input({ kind: 'brokerProbed', jobId: JOB, epoch: 1, alive: true });
    expect(offered.of('complete')).toHaveLength(1);
    expect(offered.of('accept')).toEqual([]);
  });

  it('means the job as held now: an answer of the op that comes later is not sent', () => {
    const rig = cancel(new Rig().connected().held().running('op-1'))
      .settled('op-1')
      .sessionGone()
      .settled('op-1')
      .advance(1_000);
    expect(rig.of('op.response')).toEqual([]);
    expect(rig.of('complete')).toHaveLength(1);
  });

  it('after complete was sent, or for a job that is not held, changes nothing', () => {
    const rig = new Rig().connected().held().running('c', 'close').settled('c', '{}').sessionGone().mark();
    cancel(rig);
    cancel(new Rig().connected().mark());
    expect(rig.types).toEqual([]);
  });

  it('twice shortens the grace but makes one complete', () => {
    const rig = cancel(cancel(new Rig().connected().held().running('op-1')), 'user', 2).advance(9_000);
    expect(rig.did('closeSession').map((effect) => effect.graceMs)).toEqual(expect.arrayContaining([8_000, 0]));
    expect(rig.of('complete')).toHaveLength(1);
  });
});

describe('delivery of complete and fail', () => {
  const completed = (): Rig => new Rig().connected().held().running('c', 'close').settled('c', '{}').sessionGone();

  it('is over when a heartbeat sent after it was answered, not before', () => {
    const early = new Rig().connected().held().running('c', 'close').advance(15_000).settled('c', '{}').answer();
    expect(early.state.jobs.size).toBe(1);
    const rig = completed().advance(15_000).answer();
    expect(rig.state.jobs.size).toBe(0);
    expect(rig.records.at(-1)).toEqual({ kind: 'deleteJob', jobId: JOB });
  });

  it('a finished job is not listed in heartbeats, but in hello until it is surely delivered', () => {
    const rig = completed().advance(15_000);
    expect(rig.of('heartbeat').at(-1)?.payload.running).toEqual([]);
    rig.closed(1006).advance(5_000).input({ kind: 'linkUpgraded', generation: rig.generation, skewMs: 0 });
    expect(rig.did('sendHello').at(-1)?.running).toEqual([{ jobId: JOB, leaseEpoch: 1 }]);
  });

  it('is sent again when the job is resumed, and forgotten when it is not', () => {
    const again = completed()
      .closed(1006)
      .advance(5_000)
      .mark()
      .welcome([{ jobId: JOB, leaseEpoch: 1 }])
      .advance(2_100);
    expect(again.types.filter((type) => type === 'complete')).toHaveLength(1);
    const known = completed().closed(1006).advance(5_000).mark().welcome([]).advance(2_100);
    expect(known.types).not.toContain('complete');
    expect(known.records.at(-1)).toEqual({ kind: 'deleteJob', jobId: JOB });
    cancel(known, 'lease_lost');
    expect(known.of('complete').at(-1)?.payload.outcome).toBe('cancelled');
  });

  it('a close whose answer was lost is answered again, then the job completes', () => {
    const rig = completed()
      .closed(1006)
      .advance(5_000)
      .welcome([{ jobId: JOB, leaseEpoch: 1 }])
      .mark()
      .op('c', 'close');
    expect(rig.types).toEqual(['op.response', 'complete', 'ready']);
  });

  it('a close that settles while there is no connection completes after the resume', () => {
    const rig = new Rig().connected().held().running('c', 'close').closed(1006).settled('c', '{}').sessionGone();
    rig
      .advance(5_000)
      .welcome([{ jobId: JOB, leaseEpoch: 1 }])
      .mark()
      .op('c', 'close')
      .advance(100);
    expect(rig.types).toEqual(['op.response', 'complete', 'ready']);
  });
});

describe('resume', () => {
  it('inside the lease: the job goes on, a heartbeat renews it at once, the repeated op attaches [RB-RES-01] [RB-RES-03]', () => {
    const rig = new Rig().connected().held().running('op-1').advance(1_000).closed(1006).advance(4_000).mark();
    rig
      .welcome([{ jobId: JOB, leaseEpoch: 1 }])
      .op('op-1')
      .settled('op-1');
    expect(rig.types).toEqual(['heartbeat', 'ready', 'op.response']);
    expect(rig.of('heartbeat').at(-1)?.payload.running).toEqual([{ jobId: JOB, leaseEpoch: 1 }]);
    expect(rig.did('enqueueOp')).toEqual([]);
  });

  it('an op that settled while there was no connection is answered when it is asked for again', () => {
    const rig = new Rig().connected().held().running('op-1').closed(1006).settled('op-1').advance(4_000).mark();
    rig.welcome([{ jobId: JOB, leaseEpoch: 1 }]);
    expect(rig.of('op.response')).toEqual([]);
    rig.op('op-1').settled('op-1');
    expect(rig.of('op.response')).toHaveLength(1);
  });

  it('a job that is not resumed stops at once, and its cancel is answered [RB-RES-04]', () => {
    const rig = new Rig().connected().held().running('op-1').closed(1006).advance(4_000).mark().welcome([]);
    expect(rig.did('closeSession')).toHaveLength(1);
    rig.settled('op-1').sessionGone();
    expect(rig.types).not.toContain('op.response');
    cancel(rig, 'lease_lost');
    expect(rig.of('complete')).toMatchObject([{ payload: { outcome: 'cancelled' } }]);
  });

  it('a resume at another epoch is none', () => {
    const rig = new Rig()
      .connected()
      .held()
      .closed(1006)
      .advance(4_000)
      .welcome([{ jobId: JOB, leaseEpoch: 2 }]);
    expect([...rig.state.jobs.values()].every((job) => job.ending !== null)).toBe(true);
  });

  it('a lease that ran out is not listed', () => {
    const rig = new Rig().connected().held().running('op-1').closed(1006);
    for (let at = 0; at < 60_000; at += 1_000) {
      rig.advance(1_000);
      if (rig.state.link.phase === 'dialling')
        rig.input({ kind: 'linkFailed', generation: rig.generation, message: '', rateLimitedSec: null });
    }
    expect(rig.state.jobs.size).toBe(0);
    expect(rig.did('closeSession').length).toBeGreaterThan(0);
  });
});

describe('restart of the bridge', () => {
  const restarted = (before: Rig): Rig => {
    const after = before.reborn();
    after.now += 2_000;
    return after.input({ kind: 'timePassed' });
  };

  it('held jobs are listed, resumed, and their ops answered by the broker', () => {
    const rig = restarted(new Rig().connected().held().running('op-1')).brokerUp();
    rig.input({ kind: 'linkUpgraded', generation: 1, skewMs: 0 });
    expect(rig.did('sendHello')).toMatchObject([{ running: [{ jobId: JOB, leaseEpoch: 1 }] }]);
    rig
      .welcome([{ jobId: JOB, leaseEpoch: 1 }])
      .op('op-1')
      .sessionOpened()
      .settled('op-1');
    expect(rig.did('enqueueOp')).toHaveLength(1);
    expect(rig.of('op.response')).toHaveLength(1);
  });

  it('a workspace that is gone is never replaced by an empty one', () => {
    const rig = restarted(new Rig().connected().held().running('op-1'))
      .brokerUp()
      .welcome([{ jobId: JOB, leaseEpoch: 1 }])
      .op('op-2');
    rig
      .input({ kind: 'sessionRefused', jobId: JOB, epoch: 1, localId: SESSION, why: 'used', message: 'session_closed' })
      .sessionGone();
    expect(rig.of('fail')).toMatchObject([{ payload: { class: 'runner', code: 'session_lost' } }]);
  });

  it('an unconfirmed complete is sent again', () => {
    const rig = restarted(
      new Rig().connected().held().running('c', 'close').settled('c', '{}').sessionGone(),
    ).brokerUp();
    rig.welcome([{ jobId: JOB, leaseEpoch: 1 }]).advance(2_100);
    expect(rig.of('complete')).toHaveLength(1);
  });

  it('a job that ended for good leaves no row', () => {
    const rig = restarted(
      new Rig()
        .connected()
        .held()
        .advance(15_000)
        .answer([{ jobId: JOB, ok: false }]),
    );
    expect(rig.state.jobs.size).toBe(0);
  });
});

describe('drain', () => {
  const stop = (rig: Rig): Rig => rig.input({ kind: 'stopRequested', reason: 'shutdown' });
  const exit = (rig: Rig): number | undefined => rig.effects.find((effect) => effect.kind === 'exit')?.code;

  it('idle: drain, ready{0}, bye, 1000, exit 0 in one breath [RB-DRN-01] [RB-DRN-02]', () => {
    const rig = stop(new Rig().connected().mark());
    expect(rig.types).toEqual(['drain', 'bye']);
    expect(rig.did('closeLink')).toMatchObject([{ code: 1000 }]);
    rig.closed(1000);
    expect(exit(rig)).toBe(0);
  });

  it('a gateway that never answers the close does not keep it', () => {
    const rig = stop(new Rig().connected()).advance(2_100);
    expect(exit(rig)).toBe(0);
  });

  it('an idle session is ended within 30 s with a retryable fail, whose delivery is waited for a little', () => {
    const rig = stop(new Rig().connected().held().running('op-1').settled('op-1').mark());
    expect(rig.types).toEqual(['drain', 'ready']);
    rig.advance(10_000).sessionGone();
    expect(rig.of('fail')).toMatchObject([{ payload: { class: 'runner', code: 'shutting_down', retryable: true } }]);
    rig.advance(100).answer().closed(1000);
    expect(rig.types.at(-1)).toBe('bye');
    expect(exit(rig)).toBe(0);
    expect(rig.now - 1_000_000).toBeLessThan(30_000);
  });

  it('a running op may end inside the limit, its answer is sent, the engine may close', () => {
    const rig = stop(new Rig().connected().answered().held().running('op-1')).advance(60_000).settled('op-1');
    expect(rig.of('op.response')).toHaveLength(1);
    rig.op('c', 'close').settled('c', '{}').sessionGone().advance(4_000).closed(1000);
    expect(rig.of('complete')).toMatchObject([{ payload: { outcome: 'succeeded' } }]);
    expect(rig.of('fail')).toEqual([]);
    expect(exit(rig)).toBe(0);
  });

  it('what still runs at the limit is stopped, and the process ends [RB-DRN-03]', () => {
    const rig = stop(new Rig().connected().answered().held().running('op-1', 'ffmpeg', { timeoutSec: 3_000 })).advance(
      119_000,
    );
    expect(rig.of('fail')).toEqual([]);
    rig.advance(11_000);
    expect(rig.of('fail')).toHaveLength(1);
    rig.advance(12_000);
    expect(exit(rig)).toBe(0);
    expect(rig.now - 1_000_000).toBeLessThan(145_000);
  });

  it('a second signal is the fast path: fail at once, exit 75 within 10 s', () => {
    const rig = stop(stop(new Rig().connected().held().running('op-1').mark())).advance(1_600);
    expect(rig.of('fail')).toHaveLength(1);
    rig.advance(8_000);
    expect(exit(rig)).toBe(75);
  });

  it('without a connection and without a lease it ends at once; with one it tries to deliver for a while', () => {
    expect(exit(stop(new Rig()))).toBe(0);
    const rig = stop(new Rig().connected().held().running('c', 'close').settled('c', '{}').sessionGone().closed(1006));
    expect(exit(rig)).toBeUndefined();
    rig
      .advance(5_000)
      .welcome([{ jobId: JOB, leaseEpoch: 1 }])
      .advance(2_100);
    expect(rig.of('complete')).toHaveLength(2);
    rig.answer().answer().closed(1000);
    expect(exit(rig)).toBe(0);
    expect(exit(stop(new Rig().connected().held().running('op-1').closed(1006)).sessionGone().advance(46_000))).toBe(0);
  });

  it('an assign that crosses the drain is rejected shutting_down, an offer in the balance too', () => {
    const rig = stop(
      new Rig({ slots: 2 })
        .connected()
        .held({ jobId: `${JOB}0` })
        .assign(),
    ).input({ kind: 'brokerProbed', jobId: JOB, epoch: 1, alive: true });
    expect(rig.of('reject')).toMatchObject([{ payload: { reason: 'shutting_down' } }]);
  });

  it('of the gateway: a pool worker finishes and exits 0', () => {
    const rig = new Rig({ kind: 'pool' })
      .connected()
      .gateway({ type: 'drain', payload: { reason: 'scale_in', deadlineSec: 60 } })
      .closed(1000);
    expect(rig.types).toContain('bye');
    expect(exit(rig)).toBe(0);
  });

  it('of the gateway, with a deadline: a desktop takes the job it still holds to a new connection', () => {
    const rig = new Rig()
      .connected()
      .answered()
      .held()
      .running('op-1')
      .gateway({ type: 'drain', payload: { reason: 'deploy', deadlineSec: 5 } })
      .advance(4_900);
    expect(rig.of('bye')).toEqual([]);
    rig.advance(200).closed(1000);
    expect(rig.of('bye')).toMatchObject([{ payload: { reason: 'drained' } }]);
    expect(rig.redialIn).toBeLessThanOrEqual(5_000);
    rig
      .advance(5_000)
      .welcome([{ jobId: JOB, leaseEpoch: 1 }])
      .mark();
    expect(rig.did('closeSession')).toEqual([]);
    rig.settled('op-1');
    expect(rig.of('op.response')).toMatchObject([{ payload: { opId: 'op-1', ok: true } }]);
    expect(exit(rig)).toBeUndefined();
  });

  it('of the gateway: a desktop finishes its job, says bye, and comes back after a while', () => {
    const rig = new Rig({ slots: 2 })
      .connected()
      .answered()
      .held()
      .running('op-1')
      .gateway({ type: 'drain', payload: { reason: 'deploy' } });
    expect(rig.of('ready').at(-1)?.payload.freeSlots).toBe(0);
    rig.settled('op-1').advance(30_000);
    expect(rig.of('bye')).toEqual([]);
    rig.op('c', 'close').settled('c', '{}').sessionGone().advance(16_000).closed(1000);
    expect(rig.of('bye')).toHaveLength(1);
    expect(rig.redialIn).toBeGreaterThanOrEqual(2_900);
    expect(exit(rig)).toBeUndefined();
  });
});

describe('pause', () => {
  const pause = (rig: Rig, paused: boolean): Rig => rig.input({ kind: 'pauseChanged', paused });

  it('takes no new work, lets the held job go on, and says so [RB-DRN-02]', () => {
    const rig = pause(new Rig({ slots: 2 }).connected().answered().held().running('op-1').mark(), true);
    expect(rig.types).toEqual(['drain', 'ready']);
    expect(rig.of('drain')).toMatchObject([{ payload: { reason: 'paused_by_user' } }]);
    rig.settled('op-1').advance(60_000).op('op-2').settled('op-2');
    expect(rig.of('op.response')).toHaveLength(2);
  });

  it('ends with a short reconnect, because nothing else takes a drain back', () => {
    const rig = pause(pause(new Rig().connected(), true).advance(1_000), false);
    expect(rig.of('bye')).toHaveLength(1);
    rig.closed(1000);
    expect(rig.state.link.phase).toBe('dialling');
    rig.welcome();
    expect(rig.of('ready').at(-1)?.payload.freeSlots).toBe(1);
  });

  it('survives a restart', () => {
    const rig = new Rig({}, { paused: true }).connected();
    expect(rig.types).toEqual(['drain', 'ready']);
    expect(rig.of('ready').at(-1)?.payload.freeSlots).toBe(0);
  });
});
