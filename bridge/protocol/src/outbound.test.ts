/** What must never reach the wire is refused by the writer. */
import { expect, test } from 'vitest';
import { REJECT_REASONS } from './names.js';
import { type DraftOf, writeOutbound } from './outbound.js';
import { rawJson } from './raw-json.js';

const fence = { leaseEpoch: 1, jobToken: 'FIXTURE.job.token' };
const capabilities = {
  protocolVersion: '1.0',
  agentVersion: '0.1.0',
  os: 'linux' as const,
  arch: 'amd64' as const,
  slots: 1,
  container: 'none' as const,
  runtimeImageDigest: null as string | null,
  ffmpegVersion: '7.0',
  fontsetVersion: '1',
  jobTypes: ['video.compile'] as ('video.compile' | 'remotion.workspace-session')[],
  maxOutputBytes: 1,
};
const auth = { kind: 'pool' as const, credential: 'FIXTURE-pool-credential', workerName: 'w' };
const hello = (changes: Partial<typeof capabilities>) =>
  writeOutbound(
    {
      type: 'hello',
      id: 'm',
      payload: { protocolVersion: '1.0', auth, capabilities: { ...capabilities, ...changes } },
    },
    'runnerToGateway',
  );

test('a runner without containers cannot say that it renders [RB-CAP-01]', () => {
  expect(hello({})).toMatchObject({ ok: true });
  expect(hello({ jobTypes: ['video.compile', 'remotion.workspace-session'] })).toMatchObject({
    ok: false,
    reason: 'bad_message',
  });
  expect(hello({ runtimeImageDigest: 'sha256:00' })).toMatchObject({ ok: false, reason: 'bad_message' });
});

test('no message has a place for a credential of a provider [RB-SEC-01]', () => {
  const withKey = { ...capabilities, apiKey: 'FIXTURE' };
  const draft = { type: 'hello', id: 'm', payload: { protocolVersion: '1.0', auth, capabilities: withKey } };
  expect(writeOutbound(draft as DraftOf<'runnerToGateway'>, 'runnerToGateway')).toMatchObject({
    ok: false,
    detail: expect.stringContaining('a field the specification does not name'),
  });
});

/** Every job-scoped message of a runner, complete. */
const JOB_SCOPED = [
  { type: 'accept', payload: fence },
  { type: 'reject', payload: { ...fence, reason: 'busy' } },
  { type: 'progress', payload: { ...fence, stage: 'encode' } },
  { type: 'op.response', payload: { ...fence, opId: 'o', ok: true, result: {} } },
  { type: 'complete', payload: { ...fence, outcome: 'cancelled' } },
  { type: 'fail', payload: { ...fence, class: 'runner', code: 'timeout', message: '', retryable: true } },
];

test.each(JOB_SCOPED)(
  '$type needs jobId, leaseEpoch, jobToken, and op.response a sessionId [RB-MSG-01] [RB-MSG-02]',
  ({ type, payload }) => {
    const write = (draft: object) => writeOutbound(draft as DraftOf<'runnerToGateway'>, 'runnerToGateway');
    const whole = { type, id: 'm', jobId: 'j', sessionId: 's', payload };
    expect(write(whole)).toMatchObject({ ok: true });
    expect(write({ ...whole, jobId: undefined })).toMatchObject({ ok: false });
    expect(write({ ...whole, sessionId: undefined }).ok).toBe(type !== 'op.response');
    for (const field of ['leaseEpoch', 'jobToken']) {
      expect(write({ ...whole, payload: { ...payload, [field]: undefined } }), field).toMatchObject({ ok: false });
    }
    expect(write({ ...whole, payload: { ...payload, later: 1 } })).toMatchObject({ ok: false });
  },
);

test('only the reasons, outcomes and directions of the document are written', () => {
  const write = (draft: object) => writeOutbound(draft as DraftOf<'runnerToGateway'>, 'runnerToGateway');
  for (const reason of REJECT_REASONS) {
    expect(write({ type: 'reject', id: 'm', jobId: 'j', payload: { ...fence, reason } })).toMatchObject({ ok: true });
  }
  expect(write({ type: 'reject', id: 'm', jobId: 'j', payload: { ...fence, reason: 'tired' } })).toMatchObject({
    ok: false,
  });
  expect(write({ type: 'complete', id: 'm', jobId: 'j', payload: { ...fence, outcome: 'done' } })).toMatchObject({
    ok: false,
  });
  expect(write({ type: 'cancel', id: 'm', jobId: 'j', payload: { reason: 'user', graceSec: 10 } })).toMatchObject({
    ok: false,
  });
  expect(write({ type: 'ready', id: 'm', jobId: 'j', payload: { freeSlots: 1 } })).toMatchObject({ ok: false });
  expect(write({ type: 'ready', id: '', payload: { freeSlots: 1 } })).toMatchObject({ ok: false });
});

test('a result is an object, as text or as a value; text is written byte for byte', () => {
  const write = (result: unknown) =>
    writeOutbound(
      {
        type: 'op.response',
        id: 'm',
        jobId: 'j',
        sessionId: 's',
        payload: { ...fence, opId: 'o', ok: true, result },
      } as DraftOf<'runnerToGateway'>,
      'runnerToGateway',
    );
  const written = write(rawJson('{ "b": 1.0, "a": 1180591620717411303424 }'));
  expect(written).toMatchObject({
    ok: true,
    text: expect.stringContaining('"result":{ "b": 1.0, "a": 1180591620717411303424 }'),
  });
  expect(write(rawJson('[]'))).toMatchObject({ ok: false });
  expect(write([])).toMatchObject({ ok: false });
  expect(() => rawJson('{')).toThrow(SyntaxError);
});

test('an error of the writer names the field and never its value', () => {
  const jobToken = 'FIXTURE.secret.token';
  const written = writeOutbound(
    { type: 'accept', id: 'm', jobId: 'j', payload: { leaseEpoch: -1, jobToken } },
    'runnerToGateway',
  );
  expect(written).toMatchObject({ ok: false, detail: expect.stringContaining('payload.leaseEpoch') });
  expect(JSON.stringify(written)).not.toContain(jobToken);
});
