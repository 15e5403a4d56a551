/** The line between tolerant in and strict out, and the limits, byte by byte. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readInbound } from './inbound.js';
import { MAX_MESSAGE_BYTES, MAX_PAYLOAD_BYTES } from './limits.js';
import { writeOutbound } from './outbound.js';
import { rawJson } from './raw-json.js';

const fence = { leaseEpoch: 1, jobToken: 'FIXTURE.job.token' };
const answer = (result: string) =>
  writeOutbound(
    {
      type: 'op.response',
      id: 'm-1',
      jobId: 'job-1',
      sessionId: 'session-1',
      payload: { ...fence, opId: 'op-1', ok: true, result: rawJson(result) },
    },
    'runnerToGateway',
  );

/** A result that makes the payload of `answer` exactly `bytes` long, made of `unit`s and filled up with `a`. */
function resultOfPayload(bytes: number, unit: string): string {
  const empty = answer('{"t":""}');
  if (!empty.ok) throw new Error(empty.detail);
  const room = bytes - empty.payloadBytes;
  const unitBytes = new TextEncoder().encode(unit).length;
  return `{"t":"${unit.repeat(Math.floor(room / unitBytes))}${'a'.repeat(room % unitBytes)}"}`;
}

test.each(['a', 'é', '€', '😀'])('a payload of 4 MiB of %s is written, one byte more is not [RB-ENV-02]', (unit) => {
  const largest = answer(resultOfPayload(MAX_PAYLOAD_BYTES, unit));
  expect(largest).toMatchObject({ ok: true, payloadBytes: MAX_PAYLOAD_BYTES });
  expect(answer(resultOfPayload(MAX_PAYLOAD_BYTES + 1, unit))).toMatchObject({
    ok: false,
    reason: 'payload_too_large',
  });
  if (largest.ok) expect(readInbound(largest.text, 'runnerToGateway').kind).toBe('message');
});

test('a payload over 4 MiB, and a message over the read limit, are told apart and both are 1009 [RB-ENV-02] [RB-ENV-03]', () => {
  const message = (length: number): string =>
    JSON.stringify({ v: 1, type: 'bye', id: 'm', payload: { reason: 'x', filler: 'a'.repeat(length) } });
  const over = message(MAX_PAYLOAD_BYTES);
  expect(readInbound(over, 'gatewayToRunner')).toMatchObject({ reason: 'payload_too_large', closeCode: 1009 });
  const huge = message(MAX_MESSAGE_BYTES);
  expect(readInbound(huge, 'gatewayToRunner')).toMatchObject({ reason: 'message_too_large', closeCode: 1009 });
  expect(MAX_MESSAGE_BYTES).toBe(4_194_304 + 65_536);
});

test('a long envelope around a small payload is fine up to the read limit [RB-ENV-03]', () => {
  const text = JSON.stringify({ v: 1, type: 'bye', id: 'm', later: 'a'.repeat(100_000), payload: { reason: 'x' } });
  expect(readInbound(text, 'gatewayToRunner').kind).toBe('message');
});

test('bytes that are not UTF-8 are refused, and a cut character too [RB-ENV-01]', () => {
  expect(readInbound(new Uint8Array([0x7b, 0xff, 0x7d]), 'gatewayToRunner')).toMatchObject({ reason: 'not_utf8' });
  expect(readInbound(new Uint8Array([0x22, 0xf0, 0x9f, 0x98]), 'gatewayToRunner')).toMatchObject({
    reason: 'not_utf8',
  });
});

test('an unknown type is ignored whatever else it has, or lacks [RB-ENV-06]', () => {
  for (const rest of [{}, { id: 'm', payload: {} }, { payload: 7 }, { jobId: '../x', payload: { opId: 'o' } }]) {
    const inbound = readInbound(JSON.stringify({ v: 1, type: 'telemetry', ...rest }), 'gatewayToRunner');
    expect(inbound).toMatchObject({ kind: 'ignored', reason: 'unknown_type', type: 'telemetry' });
  }
});

test('a message cannot pass itself off as an outcome of the reader', () => {
  const text = JSON.stringify({
    kind: 'malformed',
    reason: 'x',
    detail: 'x',
    closeCode: 1000,
    v: 1,
    type: 'bye',
    id: 'm',
    payload: {},
  });
  expect(readInbound(text, 'gatewayToRunner')).toMatchObject({ kind: 'message', message: { type: 'bye' } });
});

test('what is left of a bad op.request is enough to answer it', () => {
  const text = JSON.stringify({
    v: 1,
    type: 'op.request',
    id: 'm',
    jobId: 'j',
    sessionId: 's',
    payload: { opId: 'o', op: 7 },
  });
  expect(readInbound(text, 'gatewayToRunner')).toMatchObject({
    kind: 'malformed',
    reason: 'bad_payload',
    detail: expect.stringContaining('payload.op'),
    jobId: 'j',
    sessionId: 's',
    opId: 'o',
  });
});

test('fields a later version adds are ignored everywhere [RB-ENV-05]', () => {
  const text = JSON.stringify({
    v: 1,
    type: 'cancel',
    id: 'm',
    jobId: 'j',
    later: {},
    payload: { reason: 'user', graceSec: 10, later: { deep: [1] } },
  });
  const inbound = readInbound(text, 'gatewayToRunner');
  expect(inbound).toMatchObject({ kind: 'message', message: { payload: { reason: 'user', graceSec: 10 } } });
  expect(JSON.stringify(inbound)).not.toContain('later');
});

test('what a gateway left out, or wrote as null or 0, is a default and never a lost job', () => {
  const read = (payload: object) => {
    const text = JSON.stringify({ v: 1, type: 'assign', id: 'm', jobId: 'j', payload });
    const inbound = readInbound(text, 'gatewayToRunner');
    return inbound.kind === 'message' && inbound.message.type === 'assign' ? inbound.message : undefined;
  };
  const least = { jobType: 'video.compile', leaseEpoch: 1, jobToken: 'FIXTURE.job.token' };
  const zero = {
    ...least,
    timeoutSec: 0,
    limits: { maxOutputBytes: 0, idleTimeoutSec: 0 },
    requires: null,
    spec: null,
  };
  for (const payload of [least, zero]) {
    expect(read(payload)).toMatchObject({
      payload: {
        timeoutSec: 14_400,
        attempt: 0,
        limits: { maxOutputBytes: undefined, idleTimeoutSec: undefined },
        requires: {},
        spec: {},
      },
      specText: '{}',
    });
  }
  expect(read({ ...least, timeoutSec: 1.2 })?.payload.timeoutSec).toBe(2);
  expect(read({ ...least, timeoutSec: -1 })).toBeUndefined();
  expect(read({ ...least, timeoutSec: '60' })).toBeUndefined();
});

test('numbers and key order of arguments survive as text', () => {
  const args = '{ "z":1.0, "a":1180591620717411303424,"é":"\\u00e9" }';
  const text = `{"v":1,"type":"op.request","id":"m","jobId":"j","sessionId":"s","payload":{"args":{},"opId":"o","op":"x","args":${args}}}`;
  expect(readInbound(text, 'gatewayToRunner')).toMatchObject({ kind: 'message', message: { argsText: args } });
});

test('reading never throws and never mistakes the kind, whatever comes', () => {
  const frame = fc.oneof(
    fc.string(),
    fc.json(),
    fc.uint8Array({ maxLength: 200 }),
    fc
      .record({
        v: fc.oneof(fc.constant(1), fc.anything()),
        type: fc.constantFrom(
          'hello',
          'welcome',
          'assign',
          'op.request',
          'op.response',
          'fail',
          'nothing',
          '',
          '__proto__',
        ),
        id: fc.oneof(fc.constant('m'), fc.anything()),
        jobId: fc.oneof(fc.constant('j'), fc.anything()),
        sessionId: fc.oneof(fc.constant('s'), fc.anything()),
        payload: fc.oneof(fc.object(), fc.anything()),
      })
      .map((value) => {
        try {
          return JSON.stringify(value) ?? '';
        } catch {
          return '';
        }
      }),
  );
  fc.assert(
    fc.property(frame, fc.constantFrom('runnerToGateway' as const, 'gatewayToRunner' as const), (data, direction) => {
      expect(['message', 'ignored', 'malformed']).toContain(readInbound(data, direction).kind);
    }),
    { numRuns: 500 },
  );
});

test('nesting of any depth is read without a stack', () => {
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
  const text = `{"v":1,"type":"op.request","id":"m","jobId":"j","sessionId":"s","payload":{"opId":"o","op":"x","args":{"d":${deep}}}}`;
  const inbound = readInbound(text, 'gatewayToRunner');
  expect(inbound.kind).toBe('message');
});
