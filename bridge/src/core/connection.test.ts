import { describe, expect, it } from 'vitest';
import { JOB, Rig, SESSION } from '../../tests/rig.js';
import { backoffMs, verdictOf } from './index.js';

describe('greeting', () => {
  it('hello comes first and nothing else before the welcome [RB-HS-01]', () => {
    const rig = new Rig().brokerUp();
    expect(rig.did('dial')).toMatchObject([{ generation: 1 }]);
    rig.input({ kind: 'linkUpgraded', generation: 1, skewMs: 0 });
    expect(rig.did('sendHello')).toMatchObject([{ generation: 1, running: [] }]);
    rig.assign().op('op-1').advance(9_000);
    expect(rig.sent).toEqual([]);
  });

  it('a gateway that never welcomes is given up after 10 s', () => {
    const rig = new Rig().brokerUp().input({ kind: 'linkUpgraded', generation: 1, skewMs: 0 }).advance(10_000);
    expect(rig.did('destroyLink')).toMatchObject([{ generation: 1 }]);
    expect(rig.state.trouble).toMatchObject({ code: 'unreachable' });
  });

  it('without executors the first dial waits a moment for them, but not for ever', () => {
    const rig = new Rig().advance(2_900);
    expect(rig.did('dial')).toEqual([]);
    rig.advance(200);
    expect(rig.did('dial')).toHaveLength(1);
  });

  it('the welcome is followed by ready with the free slots [RB-MSG-04]', () => {
    expect(new Rig({ slots: 3 }).connected().types).toEqual(['ready']);
  });

  it('the heartbeat interval of the welcome is obeyed', () => {
    const rig = new Rig().brokerUp().welcome([], { heartbeatSec: 5 }).answered().advance(16_000);
    expect(rig.of('heartbeat')).toHaveLength(3);
  });
});

describe('silence', () => {
  it('45 s without an envelope destroy the socket, and the redial follows at once [RB-LIV-02]', () => {
    const rig = new Rig().connected().mark().advance(44_900);
    expect(rig.did('destroyLink')).toEqual([]);
    rig.advance(200);
    expect(rig.did('destroyLink')).toMatchObject([{ generation: 1 }]);
    expect(rig.did('dial')).toMatchObject([{ generation: 2 }]);
  });

  it('any envelope counts, an unknown type too; a malformed one does not [RB-LIV-02] [RB-LIV-03]', () => {
    const rig = new Rig().connected();
    rig.advance(40_000).input({ kind: 'unknownReceived', generation: 1, type: 'hint' }).advance(40_000);
    expect(rig.state.link.phase).toBe('open');
    const malformed = {
      kind: 'malformed' as const,
      reason: 'bad_payload' as const,
      detail: '',
      closeCode: undefined,
      type: 'cancel',
      id: 'x',
      jobId: undefined,
      sessionId: undefined,
      opId: undefined,
    };
    rig.input({ kind: 'malformedReceived', generation: 1, malformed }).advance(6_000);
    expect(rig.did('destroyLink')).toHaveLength(1);
  });

  it('events of an older connection change nothing', () => {
    const rig = new Rig().connected().advance(45_100).welcome().mark();
    for (const code of [1006, 4409, 4401, 1009]) rig.input({ kind: 'linkClosed', generation: 1, code, reason: '' });
    rig.gateway({ type: 'cancel', jobId: JOB, payload: { reason: 'user', graceSec: 10 } }, 'old', 1);
    expect(rig.state.link).toMatchObject({ phase: 'open', generation: 2 });
    expect(rig.types).toEqual([]);
  });
});

describe('heartbeats and leases', () => {
  it('every 15 s, with the free slots and the held jobs with their epochs [RB-JOB-05]', () => {
    const rig = new Rig({ slots: 2 }).connected().answered().held({ leaseEpoch: 7 }).advance(46_000);
    const beats = rig.sent.filter((one) => one.message.type === 'heartbeat');
    expect(beats.map((one) => one.at - 1_000_000)).toEqual([15_000, 30_000, 45_000]);
    expect(beats.at(0)?.message.payload).toEqual({ freeSlots: 1, running: [{ jobId: JOB, leaseEpoch: 7 }] });
  });

  it('trust ends 45 s after the last heartbeat that was answered was sent, and nothing follows [RB-FEN-04]', () => {
    const rig = new Rig().connected().held().running('op-1').advance(15_000);
    rig.advance(3_000).answer([{ jobId: JOB, ok: true }]);
    expect(rig.state.jobs.get(JOB)?.leaseUntil).toBe(1_000_000 + 15_000 + 45_000);
    for (let tick = 0; tick < 6; tick += 1) {
      rig.advance(8_000).input({ kind: 'unknownReceived', generation: 1, type: 'noise' });
    }
    expect(rig.state.jobs.size).toBe(0);
    expect(rig.did('closeSession')).toHaveLength(1);
    rig.mark().settled('op-1').sessionGone().advance(10_000);
    expect(rig.types.filter((type) => !['heartbeat', 'ready'].includes(type))).toEqual([]);
  });

  it('a second answer to the same heartbeat renews nothing', () => {
    const rig = new Rig().connected().held().advance(15_000).answer().advance(10_000).answer();
    expect(rig.state.jobs.get(JOB)?.leaseUntil).toBe(1_000_000 + 60_000);
  });

  it('ok:false stops the job, and not even complete is sent for it [RB-JOB-07] [RB-FEN-04]', () => {
    const rig = new Rig().connected().held().running('op-1').advance(15_000).mark();
    rig.answer([{ jobId: JOB, ok: false }]);
    expect(rig.did('closeSession')).toMatchObject([{ localId: SESSION }]);
    rig
      .settled('op-1')
      .sessionGone()
      .gateway({ type: 'cancel', jobId: JOB, payload: { reason: 'lease_lost', graceSec: 10 } });
    rig.advance(9_000);
    expect(rig.types).toEqual(['ready']);
  });

  it('ok:false about an epoch that was replaced since does not touch the new one', () => {
    const rig = new Rig({ slots: 2 })
      .connected()
      .held()
      .advance(15_000)
      .held({ leaseEpoch: 2 })
      .answer([{ jobId: JOB, ok: false }]);
    expect(rig.state.jobs.get(JOB)?.epoch).toBe(2);
  });

  it('a nap of 20 s costs nothing: one heartbeat leaves at once', () => {
    const rig = new Rig().connected().held().running('op-1').mark().sleep(20_000).input({ kind: 'timePassed' });
    expect(rig.types).toEqual(['heartbeat']);
    expect(rig.state.jobs.size).toBe(1);
  });

  it('after ten minutes of sleep the leases go first, then the socket; the dial is immediate and nothing old is said', () => {
    const rig = new Rig().connected().held().running('op-1').mark().sleep(600_000).settled('op-1');
    expect(rig.did('closeSession')).toHaveLength(1);
    expect(rig.did('destroyLink')).toHaveLength(1);
    expect(rig.did('dial')).toHaveLength(1);
    expect(rig.types).toEqual([]);
    expect(rig.state.attempt).toBe(0);
    rig.input({ kind: 'linkUpgraded', generation: 2, skewMs: 0 });
    expect(rig.did('sendHello')).toMatchObject([{ running: [] }]);
    expect(rig.advance(9_000).did('destroyLink')).toHaveLength(1);
  });

  it('messages that waited in the socket while the process slept past the limit are not acted on', () => {
    const rig = new Rig().connected().mark().sleep(60_000).assign();
    expect(rig.did('probeBroker')).toEqual([]);
    expect(rig.types).toEqual([]);
  });
});

describe('close codes', () => {
  const table: [number, string, number, number, string][] = [
    [1000, 'normal', 0, 60_000, 'unreachable'],
    [1001, 'going away', 0, 20_000, 'unreachable'],
    [1006, 'cut', 0, 60_000, 'unreachable'],
    [1009, 'too large', 0, 60_000, 'unreachable'],
    [1011, 'server error', 0, 60_000, 'unreachable'],
    [4400, 'bad hello', 300_000, 600_000, 'incompatible'],
    [4401, 'revoked', 300_000, 600_000, 'revoked'],
    [4403, 'forbidden', 300_000, 600_000, 'forbidden'],
    [4408, 'heartbeat timeout', 0, 20_000, 'unreachable'],
    [4409, 'superseded', 60_000, 90_000, 'superseded'],
    [4429, 'rate limited', 60_000, 600_000, 'rate_limited'],
  ];
  it.each(table)('%i (%s) waits between %i and %i ms [RB-ENV-09]', (code, _name, low, high, trouble) => {
    for (const random of [0, 0.5, 0.999]) {
      const rig = new Rig().connected();
      rig.random = random;
      rig.closed(code);
      expect(rig.redialIn).toBeGreaterThanOrEqual(low);
      expect(rig.redialIn).toBeLessThanOrEqual(high);
      expect(rig.state.trouble?.code).toBe(trouble);
    }
  });

  it.each([4401, 4409])('%i ends the jobs: they are somebody else’s now [RB-HS-11]', (code) => {
    const rig = new Rig().connected().held().running('op-1').mark().closed(code);
    expect(rig.state.jobs.size).toBe(0);
    expect(rig.did('closeSession')).toHaveLength(1);
  });

  it.each([1001, 1006, 4408, 4429, 1009])('%i keeps them', (code) => {
    const rig = new Rig().connected().held().running('op-1').mark().closed(code);
    expect(rig.state.jobs.size).toBe(1);
    expect(rig.did('closeSession')).toEqual([]);
  });

  it('4401 with a clock that is far off is clock_skew, and retried at the ordinary pace', () => {
    const rig = new Rig().brokerUp();
    rig.input({ kind: 'linkUpgraded', generation: 1, skewMs: -17 * 60_000 }).closed(4401);
    expect(rig.state.trouble).toMatchObject({ code: 'clock_skew', message: expect.stringContaining('1020 s behind') });
    expect(rig.redialIn).toBeLessThanOrEqual(1_000);
    rig.advance(1_000).welcome();
    expect(rig.state.trouble).toBeNull();
  });

  it('three take-overs in ten minutes stop the dialling for good', () => {
    const rig = new Rig().connected();
    for (let round = 0; round < 2; round += 1) {
      rig.closed(4409);
      rig.advance(rig.redialIn).welcome();
    }
    rig.closed(4409);
    expect(rig.state.link.phase).toBe('halted');
    expect(rig.state.trouble).toMatchObject({
      code: 'identity_conflict',
      message: expect.stringContaining('device init'),
    });
    rig.mark().advance(3_600_000);
    expect(rig.did('dial')).toEqual([]);
  });

  it('take-overs that are far apart do not', () => {
    const rig = new Rig().connected();
    for (let round = 0; round < 5; round += 1) {
      rig.closed(4409);
      rig.advance(rig.redialIn).welcome().answered().advance(400_000);
    }
    expect(rig.state.link.phase).toBe('open');
  });

  it('after 1009 the answer that was too large is not sent again: the gateway gets an error instead [RB-ENV-02] [RB-ENV-09]', () => {
    const rig = new Rig()
      .connected()
      .held()
      .running('op-1', 'read')
      .settled('op-1', `{"content":"${'x'.repeat(100_000)}"}`)
      .closed(1009);
    expect(rig.effects.filter((effect) => effect.kind === 'log' && effect.event === 'message.oversized')).toMatchObject(
      [{ fields: { opId: 'op-1' } }],
    );
    rig
      .advance(5_000)
      .welcome([{ jobId: JOB, leaseEpoch: 1 }])
      .mark()
      .op('op-1', 'read');
    expect(rig.did('enqueueOp')).toEqual([]);
    expect(rig.of('op.response').at(-1)?.payload).toMatchObject({ ok: false, error: { code: 'file_too_large' } });
  });

  it('an oversized message of the gateway is refused with 1009 by us and costs one ordinary reconnect', () => {
    const rig = new Rig().connected().mark();
    const malformed = {
      kind: 'malformed' as const,
      reason: 'payload_too_large' as const,
      detail: '',
      closeCode: 1009 as const,
      type: 'op.request',
      id: 'x',
      jobId: undefined,
      sessionId: undefined,
      opId: undefined,
    };
    rig.input({ kind: 'malformedReceived', generation: 1, malformed });
    expect(rig.did('closeLink')).toMatchObject([{ code: 1009 }]);
    rig.closed(1009).advance(1_000);
    expect(rig.did('dial')).toHaveLength(1);
  });
});

describe('back-off', () => {
  it('draws after the cap, so that no second gets more than its share', () => {
    const buckets = new Map<number, number>();
    for (let bridge = 0; bridge < 200; bridge += 1) {
      const random = (bridge + 0.5) / 200;
      const second = Math.floor(backoffMs(20, random, false) / 1_000);
      buckets.set(second, (buckets.get(second) ?? 0) + 1);
    }
    expect(Math.max(...buckets.values())).toBeLessThanOrEqual(10);
    expect(Math.max(...buckets.keys())).toBe(59);
  });

  it('stays at 5 s or less while a lease runs, so that at least four dials fit into it', () => {
    const rig = new Rig().connected().held().advance(1).mark();
    rig.random = 0.999;
    rig.closed(1006);
    let dials = 0;
    const end = rig.now + 44_000;
    while (rig.now < end) {
      rig.advance(rig.redialIn);
      dials += 1;
      rig.input({ kind: 'linkFailed', generation: rig.generation, message: 'refused', rateLimitedSec: null });
    }
    expect(dials).toBeGreaterThanOrEqual(8);
  });

  it('starts anew only after a welcome and a heartbeat that went round', () => {
    const rig = new Rig().connected();
    rig.random = 0.999;
    for (let round = 0; round < 8; round += 1) rig.closed(1006).advance(rig.redialIn).welcome();
    rig.closed(1006);
    expect(rig.redialIn).toBeGreaterThan(50_000);
    rig.advance(rig.redialIn).welcome().advance(15_000).answer().closed(1006);
    expect(rig.redialIn).toBeLessThanOrEqual(1_000);
  });

  it('grows for rate limits, and obeys Retry-After', () => {
    expect(verdictOf(4429, { attempt: 0, random: 0.5, skewMs: null }).waitMs).toBe(90_000);
    expect(verdictOf(4429, { attempt: 5, random: 0.999, skewMs: null }).waitMs).toBeGreaterThan(500_000);
    const rig = new Rig()
      .brokerUp()
      .input({ kind: 'linkFailed', generation: 1, message: 'HTTP 429', rateLimitedSec: 1_000 });
    expect(rig.redialIn).toBe(1_000_000);
  });
});
