import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { alignEnd, alignStart, HeadBuffer, relativePaths, TailBuffer } from './output-tail.js';

const decoder = new TextDecoder('utf-8', { fatal: true });
const text = fc.string({ unit: 'grapheme', maxLength: 400 });

describe('the end and the beginning of an output', () => {
  it('are exactly the last and first bytes, however they arrive', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 })), fc.integer({ min: 1, max: 200 }), (chunks, limit) => {
        const tail = new TailBuffer(limit);
        const head = new HeadBuffer(limit);
        for (const chunk of chunks) {
          tail.feed(chunk);
          head.feed(chunk);
        }
        const all = Buffer.concat(chunks);
        expect(Buffer.from(tail.bytes()).equals(all.subarray(Math.max(0, all.length - limit)))).toBe(true);
        expect(Buffer.from(head.bytes()).equals(all.subarray(0, limit))).toBe(true);
        expect([tail.total, head.total]).toEqual([all.length, all.length]);
        expect([tail.truncated, head.truncated]).toEqual([all.length > limit, all.length > limit]);
      }),
    );
  });

  it('are never cut inside a character', () => {
    fc.assert(
      fc.property(text, fc.nat({ max: 500 }), (whole, at) => {
        const bytes = new TextEncoder().encode(whole);
        expect(whole.endsWith(decoder.decode(alignStart(bytes.subarray(Math.min(at, bytes.length)))))).toBe(true);
        expect(whole.startsWith(decoder.decode(alignEnd(bytes.subarray(0, at))))).toBe(true);
      }),
    );
  });

  it('name files as the session sees them', () => {
    const log = "Error opening /state/sessions/s1/in.mp4; cd /state/sessions/s1: '/w/out.mp4' /work stays";
    expect(relativePaths(log, ['/w', '/state/sessions/s1'])).toBe("Error opening in.mp4; cd .: 'out.mp4' /work stays");
    expect(relativePaths('file:/w/a https://host/w/1 x/w', ['/w'])).toBe('file:a https://host/w/1 x/w');
  });
});
