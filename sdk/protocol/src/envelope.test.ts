/** Envelopes: what is found in them is exactly what was there. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readEnvelope, readEnvelopeText } from './envelope.js';
import { JSON_LIMITS } from './limits.js';
import { encode } from './message-writer.js';
import { type JsonValue, RawJson, raw, stringify } from './raw-json.js';
import { parseRequest } from './request-reader.js';

describe('an envelope', () => {
  it('gives back the exact text of any field, and its value', () => {
    const values = fc.jsonValue({ maxDepth: 4, stringUnit: 'grapheme' });
    fc.assert(
      fc.property(values, values, fc.constantFrom('', ' ', '\n\t'), (args, result, blank) => {
        const a = JSON.stringify(args);
        const b = JSON.stringify(result, null, 1);
        const text = `{${blank}"version":1,"args"${blank}:${a}${blank},"type":"t","request_id":"r","result":${blank}${b}${blank}}`;
        const read = readEnvelope(Buffer.from(text));
        if (!read.ok) throw new Error(read.fault.reason);
        expect(read.envelope.raw('args')).toBe(a);
        expect(read.envelope.raw('result')).toBe(b);
        expect(read.envelope.value('args')).toEqual(JSON.parse(a));
        expect(read.envelope.raw('other')).toBeUndefined();
        expect(read.envelope.fields()).toEqual(['version', 'args', 'type', 'request_id', 'result']);
      }),
      { numRuns: 300 },
    );
  });

  it('finds fields wherever characters have several bytes, and by names with escapes in them', () => {
    const text =
      '{"é😀":"ü","version":1,"\\u0061rgs":{"€":"\\u00e9"},"type":"t","request_id":"😀€","\\u00e4":[1],"ä€":"\\n","z":"ende"}';
    const read = readEnvelope(Buffer.from(text));
    if (!read.ok) throw new Error(read.fault.reason);
    const { envelope } = read;
    expect(envelope.fields()).toEqual(Object.keys(JSON.parse(text) as object));
    expect(envelope.raw('args')).toBe('{"€":"\\u00e9"}');
    expect(envelope.raw('ä')).toBe('[1]');
    for (const [name, value] of Object.entries(JSON.parse(text) as object)) expect(envelope.value(name)).toEqual(value);
    expect(envelope.requestId).toBe('😀€');
  });

  it('survives any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 200 }), (bytes) => {
        const read = readEnvelope(bytes);
        expect(read.ok || read.fault.code.length > 0).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });

  it('finds every byte that makes good UTF-8 bad', () => {
    const good = Buffer.from('{"version":1,"type":"heartbeat","request_id":"ä€😀"}');
    for (let at = 0; at < good.length; at += 1) {
      for (const byte of [0xff, 0xc0, 0x80, 0xed]) {
        const bad = Buffer.from(good);
        bad[at] = byte;
        const read = readEnvelope(bad);
        const decoded = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
        let valid = true;
        try {
          decoded.decode(bad);
        } catch {
          valid = false;
        }
        if (!valid) expect(read).toMatchObject({ ok: false, fault: { code: 'malformed_json', cause: 'bad_utf8' } });
      }
    }
  });

  it('says of an oversized but good message whose it is', () => {
    const read = readEnvelopeText(
      encode('succeeded', 'r9', {
        reservation_id: 'a',
        execution_id: 'b',
        result: Array.from({ length: 10_001 }, () => 0),
      }),
      JSON_LIMITS,
    );
    if (!read.ok) throw new Error(read.fault.reason);
    expect(read.envelope).toMatchObject({ type: 'succeeded', requestId: 'r9', excess: 'too_many_values' });
    expect(parseRequest(read.envelope, { extension: false })).toMatchObject({
      refusal: { code: 'result_too_large', fatal: false },
    });
  });
});

describe('writing', () => {
  it('is the same as JSON.stringify, with raw parts spliced in', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'grapheme' }), (value) => {
        expect(stringify(value as JsonValue)).toBe(JSON.stringify(value));
        expect(stringify({ a: RawJson.trusted(JSON.stringify(value)), b: undefined })).toBe(
          JSON.stringify({ a: value }),
        );
      }),
    );
  });

  it('takes only JSON that can be carried as raw', () => {
    expect(raw('{"n":1180591620717411303424,"x":1.0}').text).toBe('{"n":1180591620717411303424,"x":1.0}');
    for (const text of ['', '{', '1 2', '{"a":1,"a":1}', '"\\ud800"', `${'['.repeat(40)}${']'.repeat(40)}`, '1e999']) {
      expect(() => raw(text), text).toThrow();
    }
  });
});
