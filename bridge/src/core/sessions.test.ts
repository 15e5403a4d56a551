import { describe, expect, it } from 'vitest';
import { JOB, MEDIA, Rig, SESSION } from '../../tests/rig.js';

describe('assign', () => {
  it('accepts with the id of the assign, epoch and token, once the broker has shown that it lives [RB-JOB-03] [RB-MSG-01]', () => {
    const rig = new Rig().connected().assign();
    expect(rig.did('probeBroker')).toHaveLength(1);
    expect(rig.of('accept')).toHaveLength(0);
    rig.input({ kind: 'brokerProbed', jobId: JOB, epoch: 1, alive: true });
    expect(rig.of('accept')).toMatchObject([
      { id: 'assign-1', jobId: JOB, payload: { leaseEpoch: 1, jobToken: 'FIXTURE.job.token' } },
    ]);
    expect(rig.records).toMatchObject([{ kind: 'putJob', job: { jobId: JOB, epoch: 1 } }]);
  });

  const reasons: [string, (rig: Rig) => void, Parameters<Rig['assign']>[0], string][] = [
    ['all slots are taken', (rig) => rig.held({ jobId: `${JOB}0` }), {}, 'busy'],
    ['the broker is away', (rig) => rig.input({ kind: 'brokerLost' }), {}, 'busy'],
    ['the broker is wedged', (rig) => rig.input({ kind: 'brokerWedged', isFull: false }), {}, 'busy'],
    ['the user paused', (rig) => rig.input({ kind: 'pauseChanged', paused: true }), {}, 'paused_by_user'],
    [
      'the bridge shuts down',
      (rig) => rig.held({ jobId: `${JOB}0` }).input({ kind: 'stopRequested', reason: 'shutdown' }),
      {},
      'shutting_down',
    ],
    [
      'the gateway drains',
      (rig) => rig.held({ jobId: `${JOB}0` }).gateway({ type: 'drain', payload: { reason: 'deploy' } }),
      {},
      'shutting_down',
    ],
    ['no executor serves the job type', () => undefined, { jobType: 'video.dream' }, 'capability_mismatch'],
    [
      'there is no container runtime',
      () => undefined,
      { jobType: 'remotion.workspace-session' },
      'no_container_runtime',
    ],
    ['the font set is older', () => undefined, { requires: { fontsetVersion: '2026.08' } }, 'capability_mismatch'],
    [
      'the image digest differs',
      () => undefined,
      { requires: { runtimeImageDigest: 'sha256:1' } },
      'capability_mismatch',
    ],
    ['the output cap is larger', () => undefined, { maxOutputBytes: 5 * 1024 ** 3 }, 'capability_mismatch'],
  ];
  it.each(reasons)('is rejected at once when %s [RB-JOB-03] [RB-CAP-02]', (_name, arrange, assign, reason) => {
    const rig = new Rig().connected();
    arrange(rig);
    rig.assign(assign, 'assign-x');
    expect(rig.of('reject').at(-1)).toMatchObject({ id: 'assign-x', jobId: JOB, payload: { reason, leaseEpoch: 1 } });
  });

  it('a version that is newer in numbers, not in letters, is enough for a pin', () => {
    const rig = new Rig().connected().assign({ requires: { fontsetVersion: '2026.6' } });
    expect(rig.of('reject')).toEqual([]);
  });

  it('is rejected busy within 10 s when the broker does not answer the probe', () => {
    const rig = new Rig().connected().assign().advance(9_000);
    expect(rig.of('reject')).toMatchObject([{ payload: { reason: 'busy' } }]);
    expect(rig.sent.find((one) => one.message.type === 'reject')?.at).toBeLessThan(1_000_000 + 10_000);
  });

  it('a duplicate at the same epoch is accepted once more and runs once [RB-JOB-03]', () => {
    const rig = new Rig().connected().held().assign({}, 'assign-2');
    expect(rig.of('accept').map((message) => message.id)).toEqual(['assign-1', 'assign-2']);
    expect(rig.state.jobs.size).toBe(1);
  });

  it('a duplicate while the offer is open makes one job', () => {
    const rig = new Rig()
      .connected()
      .assign()
      .assign({}, 'assign-2')
      .input({ kind: 'brokerProbed', jobId: JOB, epoch: 1, alive: true });
    expect(rig.of('accept')).toHaveLength(1);
    expect(rig.did('probeBroker')).toHaveLength(1);
  });

  it('a higher epoch replaces the job: the old work stops, nothing with the old epoch is sent [RB-FEN-04]', () => {
    const rig = new Rig({ slots: 2 }).connected().held().running('op-1').mark();
    rig.held({ leaseEpoch: 2 });
    expect(rig.did('closeSession')).toMatchObject([{ localId: SESSION }]);
    rig.settled('op-1').advance(20_000);
    expect(rig.of('op.response')).toEqual([]);
    expect(rig.of('accept').at(-1)?.payload.leaseEpoch).toBe(2);
    expect(rig.of('heartbeat').at(-1)?.payload.running).toEqual([{ jobId: JOB, leaseEpoch: 2 }]);
  });

  it('the new assignment takes over the only slot, although the old work is still being stopped [RB-FEN-04]', () => {
    const rig = new Rig({ slots: 1 }).connected().held().running('op-1').mark().held({ leaseEpoch: 2 });
    expect(rig.of('reject')).toEqual([]);
    expect(rig.of('accept').at(-1)?.payload.leaseEpoch).toBe(2);
    rig.assign({ jobId: '00000000-0000-4000-8000-00000000000c' }, 'assign-other');
    expect(rig.of('reject')).toMatchObject([{ payload: { reason: 'busy' } }]);
  });

  it.each(['op 1', 'Öp-☃-😀', 'a/b\\"c', '\u0000'])('an opId of any form is run and echoed: %j', (opId) => {
    const rig = new Rig().connected().held().running(opId).settled(opId);
    expect(rig.of('op.response')).toMatchObject([{ payload: { opId, ok: true } }]);
  });

  it('an assign that slept away its ten seconds is not answered any more [RB-JOB-03]', () => {
    const rig = new Rig().connected().assign().mark().sleep(12_000);
    rig.input({ kind: 'brokerProbed', jobId: JOB, epoch: 1, alive: true });
    expect(rig.of('accept')).toEqual([]);
    expect(rig.of('reject')).toEqual([]);
    expect(rig.state.jobs.size + rig.state.offers.size).toBe(0);
  });

  it('a lower epoch than the one held changes nothing', () => {
    const rig = new Rig().connected().held({ leaseEpoch: 5 }).mark().assign({ leaseEpoch: 4 });
    expect(rig.types).toEqual([]);
  });

  it('free slots follow what really runs, not what was said [RB-MSG-04]', () => {
    const rig = new Rig({ slots: 2 }).connected();
    expect(rig.of('ready').map((message) => message.payload.freeSlots)).toEqual([2]);
    rig.held().running('op-1');
    rig.gateway({ type: 'cancel', jobId: JOB, payload: { reason: 'user', graceSec: 10 } });
    rig.advance(9_600);
    expect(rig.of('complete')).toHaveLength(1);
    expect(rig.of('ready')).toHaveLength(1);
    rig.sessionGone();
    expect(rig.of('ready').map((message) => message.payload.freeSlots)).toEqual([2, 2]);
  });

  it('a host without executors connects and announces no slot', () => {
    const rig = new Rig().input({ kind: 'brokerConnected' }).advance(3_100).welcome();
    expect(rig.of('ready').at(-1)?.payload.freeSlots).toBe(0);
  });

  it('a runner that is too old takes no job and says capability_mismatch [RB-VER-03]', () => {
    const rig = new Rig().brokerUp().welcome([], { minAgentVersion: '0.2' });
    expect(rig.of('ready').at(-1)?.payload.freeSlots).toBe(0);
    rig.assign();
    expect(rig.of('reject').at(-1)?.payload.reason).toBe('capability_mismatch');
  });

  it('changed capabilities are told by a short reconnect while idle, and not while a job is held [RB-CAP-04]', () => {
    const rig = new Rig().connected().answered().advance(5_000).held().mark();
    rig.input({ kind: 'registryChanged', capabilities: { ...MEDIA, ffmpegVersion: '8.0' } }).advance(10_000);
    expect(rig.of('bye')).toEqual([]);
    rig.op('c', 'close').sessionOpened().settled('c', '{}').sessionGone().advance(20_000);
    expect(rig.of('bye')).toHaveLength(1);
    expect(rig.generation).toBeGreaterThan(1);
  });

  it('does not wait for the next beat to learn that an ended job is settled, when what it serves has changed', () => {
    const rig = new Rig().connected().held();
    rig.gateway({ type: 'cancel', jobId: JOB, payload: { reason: 'user', graceSec: 10 } }).sessionGone();
    expect(rig.of('complete')).toHaveLength(1);
    rig.answering = true;
    rig
      .input({ kind: 'registryChanged', capabilities: { ...MEDIA, ffmpegVersion: '8.0' } })
      .mark()
      .advance(4_000);
    expect(rig.types).toEqual(['heartbeat', 'bye']);
  });
});

describe('ops', () => {
  it('the first op opens the session it names, and is enqueued with its arguments as text', () => {
    const rig = new Rig().connected().held().mark();
    rig.op('op-1', 'stage', { args: { url: 'https://o.invalid/k?sig=1', path: 'in.mp4', maxBytes: 10 } });
    expect(rig.did('openSession')).toMatchObject([{ localId: SESSION, jobType: 'video.compile' }]);
    rig.sessionOpened();
    const [enqueue] = rig.did('enqueueOp');
    expect(enqueue).toMatchObject({
      localId: SESSION,
      jobType: 'video.compile',
      opId: 'op-1',
      timeoutMs: 60_000,
      secrets: { s0: 'https://o.invalid/k?sig=1' },
    });
    expect(JSON.parse(enqueue?.argsText ?? '')).toEqual({
      op: 'stage',
      args: { url: 'reelhost-secret:s0', path: 'in.mp4', maxBytes: 10 },
      session: {
        id: SESSION,
        dir: `/sessions/${SESSION}`,
        spec: { executionId: 'e', stepId: 's', mode: 'Reencode' },
        limits: { maxOutputBytes: 1_000, idleTimeoutSec: 1_800 },
      },
    });
  });

  it('the result travels byte for byte, with epoch, token and session [RB-MSG-02]', () => {
    const rig = new Rig().connected().held().running('op-1').settled('op-1', '{"z":1.0,"a":1180591620717411303424}');
    expect(rig.of('op.response')).toMatchObject([
      {
        sessionId: SESSION,
        resultText: '{"z":1.0,"a":1180591620717411303424}',
        payload: { ok: true, opId: 'op-1', leaseEpoch: 1 },
      },
    ]);
  });

  it('another op meanwhile is answered op_in_flight, the same opId attaches to the run [RB-SES-05] [RB-IDM-03]', () => {
    const rig = new Rig().connected().held().running('op-1').op('op-2').recalled('op-2', null).op('op-1');
    expect(rig.of('op.response')).toMatchObject([
      { payload: { opId: 'op-2', ok: false, error: { code: 'op_in_flight' } } },
    ]);
    rig.settled('op-1');
    expect(rig.of('op.response')).toHaveLength(2);
    expect(rig.did('enqueueOp')).toHaveLength(1);
  });

  it('an op of the past is answered from the journal although another one runs; the run goes on [RB-IDM-03]', () => {
    const rig = new Rig().connected().held().running('op-1').settled('op-1', '{"n":1}').running('op-2').op('op-1');
    expect(rig.did('recallOp')).toMatchObject([{ localId: SESSION, opId: 'op-1' }]);
    rig.recalled('op-1', { ok: true, resultText: '{"n":1}' });
    expect(rig.of('op.response').at(-1)).toMatchObject({ resultText: '{"n":1}', payload: { opId: 'op-1', ok: true } });
    rig.settled('op-2');
    expect(rig.of('op.response').at(-1)).toMatchObject({ payload: { opId: 'op-2', ok: true } });
    expect(rig.did('enqueueOp').map((effect) => effect.opId)).toEqual(['op-1', 'op-2']);
  });

  it('a repeated opId goes to the broker again, whose journal answers [RB-IDM-03]', () => {
    const rig = new Rig().connected().held().running('op-1').settled('op-1').op('op-1');
    expect(rig.did('enqueueOp').map((effect) => effect.opId)).toEqual(['op-1', 'op-1']);
    rig.settled('op-1');
    expect(rig.of('op.response')).toHaveLength(2);
  });

  it.each([
    ['job_expired', 'op_expired'],
    ['session_busy', 'op_in_flight'],
    ['result_too_large', 'output_too_large'],
    ['unsupported_op', 'unsupported_op'],
    ['executor_lost', 'executor_lost'],
    ['a_code_of_tomorrow', 'a_code_of_tomorrow'],
  ])('the local error %s is the remote error %s [RB-ERR-02]', (local, remote) => {
    const rig = new Rig().connected().held().running('op-1').failedOp('op-1', local);
    expect(rig.of('op.response')).toMatchObject([{ payload: { ok: false, error: { code: remote } } }]);
  });

  it.each([
    ['read', 'file_too_large'],
    ['readFile', 'file_too_large'],
    ['ffprobe', 'output_too_large'],
  ])('an answer of %s that does not fit is %s, and the connection stays [RB-ENV-02]', (op, code) => {
    const rig = new Rig()
      .connected()
      .held()
      .running('op-1', op)
      .settled('op-1', JSON.stringify({ content: 'ü'.repeat(2_097_152) }));
    expect(rig.of('op.response')).toMatchObject([{ payload: { ok: false, error: { code, retryable: false } } }]);
    expect(rig.state.link.phase).toBe('open');
  });

  it('a smaller limit of the welcome is obeyed', () => {
    const rig = new Rig()
      .brokerUp()
      .welcome([], { maxInlineBytes: 10_000 })
      .held()
      .running('op-1')
      .settled('op-1', `{"x":"${'y'.repeat(20_000)}"}`);
    expect(rig.of('op.response')).toMatchObject([{ payload: { ok: false, error: { code: 'output_too_large' } } }]);
  });

  it('the smallest time limit counts: the op, its arguments, the job', () => {
    const rig = new Rig().connected().held({ timeoutSec: 50 });
    rig
      .op('op-1', 'ffmpeg', { args: { timeoutSec: 7 }, timeoutSec: 60 })
      .sessionOpened()
      .settled('op-1');
    rig.op('op-2', 'ffmpeg', { timeoutSec: 60 }).settled('op-2').op('op-3', 'ffmpeg', { timeoutSec: 9 });
    expect(rig.did('enqueueOp').map((effect) => effect.timeoutMs)).toEqual([7_000, 50_000, 9_000]);
  });

  it('an op nobody settles is answered timeout a little after its time', () => {
    const rig = new Rig().connected().held().running('op-1', 'ffmpeg', { timeoutSec: 10 });
    for (let beat = 0; beat < 3; beat += 1) rig.advance(10_000).answer();
    expect(rig.of('op.response')).toMatchObject([{ payload: { ok: false, error: { code: 'timeout' } } }]);
    expect(rig.did('cancelOp')).toHaveLength(1);
  });

  it('close is answered, then the job completes and the local session goes [RB-SES-09] [RB-JOB-08]', () => {
    const rig = new Rig().connected().held().running('c', 'close').mark().settled('c', '{}');
    expect(rig.types).toEqual(['op.response', 'complete']);
    expect(rig.of('complete')).toMatchObject([{ payload: { outcome: 'succeeded', leaseEpoch: 1 } }]);
    expect(rig.did('closeSession')).toHaveLength(1);
  });

  it('close works even when its executor is gone', () => {
    const rig = new Rig().connected().held().running('c', 'close').failedOp('c', 'executor_lost', true);
    expect(rig.of('op.response')).toMatchObject([{ payload: { ok: true } }]);
    expect(rig.of('complete')).toHaveLength(1);
  });

  it('a lost workspace ends the job: op_expired for the op, fail of class runner for the job [RB-ERR-01] [RB-ERR-04]', () => {
    const rig = new Rig().connected().held().running('op-1').failedOp('op-1', 'session_lost', true).sessionGone();
    expect(rig.of('op.response')).toMatchObject([{ payload: { error: { code: 'op_expired' } } }]);
    expect(rig.of('fail')).toMatchObject([{ payload: { class: 'runner', code: 'session_lost', retryable: true } }]);
  });

  it('a session id that an earlier epoch used up is replaced by one of this epoch', () => {
    const rig = new Rig().connected().held().op('op-1').mark();
    rig.input({ kind: 'sessionRefused', jobId: JOB, epoch: 1, localId: SESSION, why: 'used', message: '' });
    expect(rig.did('openSession')).toMatchObject([{ localId: `${SESSION}.e1` }]);
    rig.sessionOpened(JOB, 1, `${SESSION}.e1`).settled('op-1');
    expect(rig.of('op.response')).toMatchObject([{ sessionId: SESSION, payload: { ok: true } }]);
  });

  it('after a restart of the broker everything unsettled is said again, secrets included', () => {
    const rig = new Rig()
      .connected()
      .held()
      .running('op-1', 'stage', { args: { url: 'https://o.invalid/k?sig=1' } })
      .mark();
    rig.input({ kind: 'brokerLost' }).brokerUp();
    expect(rig.did('enqueueOp')).toMatchObject([{ opId: 'op-1', secrets: { s0: 'https://o.invalid/k?sig=1' } }]);
  });

  it('a full disk of the broker: the op fails disk_full and may be tried again, no new job is taken until there is space', () => {
    const rig = new Rig({ slots: 2 }).connected().held().op('op-1').mark();
    rig.input({ kind: 'brokerWedged', isFull: true });
    expect(rig.of('ready').at(-1)?.payload.freeSlots).toBe(0);
    rig.input({ kind: 'sessionRefused', jobId: JOB, epoch: 1, localId: SESSION, why: 'full', message: 'full' });
    expect(rig.of('op.response')).toMatchObject([{ payload: { error: { code: 'disk_full', retryable: true } } }]);
    rig.assign({ jobId: `${JOB}1` }, 'assign-9');
    expect(rig.of('reject')).toMatchObject([{ id: 'assign-9', payload: { reason: 'busy' } }]);
    rig.brokerUp().op('op-2').sessionOpened().settled('op-2');
    expect(rig.of('ready').at(-1)?.payload.freeSlots).toBe(1);
    expect(rig.of('op.response').at(-1)?.payload).toMatchObject({ opId: 'op-2', ok: true });
  });

  it('an op of a job that is not held is not run', () => {
    const rig = new Rig().connected().op('op-1');
    expect(rig.did('openSession')).toEqual([]);
    expect(rig.of('op.response')).toEqual([]);
  });

  it('an op of a second session of the same job is refused', () => {
    const rig = new Rig()
      .connected()
      .held()
      .running('op-1')
      .settled('op-1')
      .op('op-2', 'stat', { sessionId: `${SESSION}2` });
    expect(rig.of('op.response').at(-1)?.payload).toMatchObject({
      opId: 'op-2',
      ok: false,
      error: { code: 'op_expired' },
    });
  });

  it('progress is coalesced: the latest wins, at most four a second, the last one right before the answer, none after it', () => {
    const rig = new Rig().connected().held().running('op-1').mark();
    for (let at = 0; at < 1_000; at += 10) {
      rig.input({
        kind: 'opProgressed',
        jobId: JOB,
        epoch: 1,
        opId: 'op-1',
        progress: { stage: 'ffmpeg', percent: at / 10 },
      });
      rig.advance(10);
    }
    rig.settled('op-1').advance(1_000);
    const progress = rig.of('progress');
    expect(progress.length).toBeLessThanOrEqual(6);
    expect(progress.length).toBeGreaterThanOrEqual(5);
    expect(progress.at(-1)?.payload.percent).toBe(99);
    expect(rig.types.slice(-2)).toEqual(['progress', 'op.response']);
  });

  it('no progress goes into a socket that does not drain, and the answer still does', () => {
    const rig = new Rig()
      .connected()
      .held()
      .running('op-1')
      .input({ kind: 'linkPressed', generation: 1, pressed: true })
      .mark();
    for (let at = 0; at < 10_000; at += 1) {
      rig.input({ kind: 'opProgressed', jobId: JOB, epoch: 1, opId: 'op-1', progress: { stage: 'x', percent: 1 } });
    }
    rig.advance(2_000).settled('op-1');
    expect(rig.types).toEqual(['op.response']);
  });

  it('an op that ran past the idle limit when this process was replaced does not look like idleness', () => {
    const before = new Rig().connected().held({ idleTimeoutSec: 20 }).running('op-1').state.jobs.get(JOB);
    if (before === undefined) throw new Error('no job');
    const job = { ...before, op: null, acceptedAt: 400_000, lastOpAt: 500_000, leaseUntil: 1_040_000 };
    const rig = new Rig({}, { jobs: [job] }).brokerUp().welcome([{ jobId: JOB, leaseEpoch: 1 }]);
    expect(rig.of('fail')).toEqual([]);
    rig.op('op-1').sessionOpened().settled('op-1');
    expect(rig.of('op.response')).toMatchObject([{ payload: { opId: 'op-1', ok: true } }]);
  });

  it('a session over its age or idle limit is ended here too, later than the gateway would [RB-SES-02] [RB-SES-03]', () => {
    const idle = new Rig().connected().held({ idleTimeoutSec: 20 }).running('op-1').settled('op-1').mark();
    for (let beat = 0; beat < 4; beat += 1) idle.advance(10_000).answer();
    idle.sessionGone();
    expect(idle.of('fail')).toMatchObject([{ payload: { class: 'runner', code: 'timeout', retryable: false } }]);
    const old = new Rig().connected().held({ timeoutSec: 20 }).running('op-1', 'ffmpeg', { timeoutSec: 60 }).mark();
    for (let beat = 0; beat < 4; beat += 1) old.advance(10_000).answer();
    old.sessionGone();
    expect(old.of('fail')).toHaveLength(1);
  });

  it('a request that cannot be read but names its op is answered instead of timing out', () => {
    const rig = new Rig().connected().held().running('op-1').settled('op-1');
    rig.input({
      kind: 'malformedReceived',
      generation: 1,
      malformed: {
        kind: 'malformed',
        reason: 'bad_payload',
        detail: 'payload.args: must be an object',
        closeCode: undefined,
        type: 'op.request',
        id: 'x',
        jobId: JOB,
        sessionId: SESSION,
        opId: 'op-2',
      },
    });
    expect(rig.of('op.response').at(-1)?.payload).toMatchObject({
      opId: 'op-2',
      ok: false,
      error: { code: 'invalid_request' },
    });
  });
});
