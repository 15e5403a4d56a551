/** Frames, whatever the transport does to them. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeFrame, encodeFrames, FrameReader } from './frame-codec.js';

const texts = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 }), { maxLength: 8 });

function take(reader: FrameReader): string[] {
  const taken: string[] = [];
  for (let payload = reader.next(); payload !== undefined; payload = reader.next())
    taken.push(payload.toString('utf8'));
  return taken;
}

/** Bytes cut at any places. */
function pieces(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  const result: Buffer[] = [];
  let from = 0;
  for (const place of [...places, bytes.length]) {
    // A copy: a socket hands out memory it may use again.
    result.push(Buffer.from(bytes.subarray(from, place)));
    from = place;
  }
  return result;
}

describe('a frame reader', () => {
  it('yields the same messages wherever the stream is cut or glued', () => {
    fc.assert(
      fc.property(texts, fc.array(fc.nat(), { maxLength: 30 }), (messages, cuts) => {
        const reader = new FrameReader();
        const seen: string[] = [];
        for (const piece of pieces(encodeFrames(messages), cuts)) {
          reader.push(piece);
          seen.push(...take(reader));
        }
        expect(reader.fault).toBeUndefined();
        expect(reader.pendingBytes).toBe(0);
        expect(seen).toEqual(messages);
      }),
      { numRuns: 400 },
    );
  });

  it('yields the same messages at every single cut, byte by byte too', () => {
    const bytes = encodeFrames(['{"a":"ä€😀"}', '{}', '{"b":[1,2]}']);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const reader = new FrameReader();
      reader.push(bytes.subarray(0, cut));
      const first = take(reader);
      reader.push(bytes.subarray(cut));
      expect([...first, ...take(reader)]).toEqual(['{"a":"ä€😀"}', '{}', '{"b":[1,2]}']);
    }
    const slow = new FrameReader();
    const seen: string[] = [];
    for (const byte of bytes) {
      slow.push(Buffer.from([byte]));
      seen.push(...take(slow));
    }
    expect(seen.length).toBe(3);
  });

  it('refuses a length over the limit when its header is complete, and keeps nothing of the body', () => {
    fc.assert(
      fc.property(fc.integer({ min: 257, max: 0xffffffff }), fc.nat(1000), (length, extra) => {
        const header = Buffer.alloc(4 + extra);
        header.writeUInt32BE(length);
        const reader = new FrameReader(256);
        reader.push(header.subarray(0, 3));
        expect(reader.next()).toBeUndefined();
        expect(reader.fault).toBeUndefined();
        reader.push(header.subarray(3));
        expect(reader.next()).toBeUndefined();
        expect(reader.fault).toMatchObject({
          code: 'frame_too_large',
          reason: expect.stringContaining(`(${length} bytes; the limit is ${reader.maxFrameBytes})`),
        });
        expect(reader.pendingBytes).toBe(0);
        reader.push(encodeFrame('{}'));
        expect(reader.next()).toBeUndefined();
      }),
    );
  });

  it('reserves no memory because of an announced length', () => {
    const header = Buffer.alloc(4);
    header.writeUInt32BE(1_000_000);
    const readers = Array.from({ length: 2_000 }, () => new FrameReader());
    const before = process.memoryUsage().arrayBuffers;
    for (const reader of readers) {
      reader.push(Buffer.from(header));
      reader.push(Buffer.from('{"'));
      expect(reader.next()).toBeUndefined();
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(2_000_000);
  });

  it('holds at most twice what it received, however small the pieces are', () => {
    const reader = new FrameReader();
    const frame = encodeFrame(`"${'x'.repeat(300_000)}"`);
    const before = process.memoryUsage().arrayBuffers;
    for (let at = 0; at < frame.length; at += 100) reader.push(Buffer.from(frame.subarray(at, at + 100)));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(3_000_000);
    expect(take(reader)[0]?.length).toBe(300_002);
  });

  it('serves the frames that came before a bad one', () => {
    const reader = new FrameReader();
    reader.push(Buffer.concat([encodeFrames(['1', '2']), Buffer.from([0, 0, 0, 0]), encodeFrame('3')]));
    expect(take(reader)).toEqual(['1', '2']);
    expect(reader.fault).toMatchObject({ code: 'invalid_frame', cause: 'empty_frame' });
  });

  it('obeys a limit that is changed between two frames of one chunk', () => {
    const large = 'x'.repeat(500);
    const bytes = encodeFrames(['hello', large]);
    const strict = new FrameReader(256);
    strict.push(bytes);
    expect(take(strict)).toEqual(['hello']);
    expect(strict.fault?.code).toBe('frame_too_large');
    const raised = new FrameReader(256);
    raised.push(bytes);
    expect(raised.next()?.toString()).toBe('hello');
    raised.maxFrameBytes = 1_000;
    expect(take(raised)).toEqual([large]);
  });

  it('gives up on a caller that reads on without taking frames', () => {
    const reader = new FrameReader(256);
    for (let count = 0; count < 200; count += 1) reader.push(encodeFrame('{"a":1}'));
    expect(reader.fault?.code).toBe('buffer_limit');
  });
});
