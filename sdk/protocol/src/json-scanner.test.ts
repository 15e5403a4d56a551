/** The scanner against JSON.parse: it accepts nothing that is not JSON, and refuses nothing but what the protocol forbids. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkJson } from './json-scanner.js';
import { MalformedJson } from './json-tokens.js';
import { JSON_LIMITS, JSON_LIMITS_EXTENSION } from './limits.js';

function verdict(text: string, limits = JSON_LIMITS_EXTENSION): string {
  try {
    return checkJson(text, limits) ?? 'good';
  } catch (error) {
    if (error instanceof MalformedJson) return error.reason;
    throw error;
  }
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

/** JSON texts made of fragments, most of them slightly wrong. */
const fragments = fc
  .array(
    fc.constantFrom(
      ...[
        '{',
        '}',
        '[',
        ']',
        ',',
        ':',
        '"',
        '\\',
        '"a"',
        '"b":',
        '1',
        '-',
        '0',
        '.',
        'e',
        '+',
        '5e3',
        '-0.5',
        'true',
        'fals',
      ],
      ...[
        'false',
        'null',
        ' ',
        '\n',
        '\\u0041',
        '\\ud83d\\ude00',
        '\\n',
        '\t',
        'é',
        '"x\\"y"',
        '\u0001',
        '\u2028',
        '/*',
      ],
    ),
    { maxLength: 14 },
  )
  .map((parts) => parts.join(''));

describe('the scanner', () => {
  it('accepts whatever JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6, stringUnit: 'grapheme' }), fc.constantFrom(0, 2), (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        expect(verdict(` ${text}\n`)).toBe('good');
      }),
      { numRuns: 500 },
    );
  });

  it('never accepts what JSON.parse refuses, and refuses for one of three reasons what it accepts', () => {
    fc.assert(
      fc.property(fc.oneof(fragments, fc.string({ maxLength: 20 })), (text) => {
        const said = verdict(text);
        if (said === 'good') expect(parses(text)).toBe(true);
        else if (parses(text)) expect(['duplicate_key', 'lone_surrogate', 'number_out_of_range']).toContain(said);
      }),
      { numRuns: 5_000 },
    );
  });

  it('finds every change of one character that makes good JSON bad', () => {
    const good = '{"a":[1,-0.5e+3,true,null,"x\\u00e9\\n"],"b":{"c":"😀"}}';
    for (let at = 0; at < good.length; at += 1) {
      for (const other of ['', '"', '\\', ',', ']', '0', ' ', '\u0000', 'e']) {
        const text = good.slice(0, at) + other + good.slice(at + 1);
        const said = verdict(text);
        if (said === 'good') expect(parses(text), text).toBe(true);
        else if (parses(text)) expect(['duplicate_key', 'lone_surrogate'], text).toContain(said);
      }
    }
  });

  it('finds a key that stands twice, in small and large objects, escaped or not', () => {
    expect(verdict('{"a":1,"a":2}')).toBe('duplicate_key');
    expect(verdict('{"a":1,"\\u0061":2}')).toBe('duplicate_key');
    expect(verdict('[{"b":{"a":1},"a":{"b":1}}]')).toBe('good');
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.string({ unit: 'grapheme', maxLength: 6 }), { minLength: 1, maxLength: 60 }),
        fc.nat(),
        fc.nat(),
        (keys, from, to) => {
          const members = keys.map((key) => `${JSON.stringify(key)}:0`);
          expect(verdict(`{${members.join(',')}}`)).toBe('good');
          const twice = JSON.stringify(keys[from % keys.length]).replace(
            /^"(?=[a-z])./,
            (first) => `"\\u00${first.charCodeAt(1).toString(16)}`,
          );
          members.splice(to % (members.length + 1), 0, `${twice}:1`);
          expect(verdict(`{${members.join(',')}}`)).toBe('duplicate_key');
        },
      ),
      { numRuns: 200 },
    );
  });

  it('finds a key again however it is escaped, beside large objects inside it', () => {
    const escapedWhole = (text: string): string =>
      `"${Array.from({ length: text.length }, (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`;
    const inner = `{${Array.from({ length: 300 }, (_, n) => `"${n}":{"${n}":0}`).join(',')}}`;
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 8 }), fc.nat(60), (key, before) => {
        const others = Array.from({ length: before }, (_, n) => `"other ${n}":${n % 20 === 0 ? inner : n}`);
        const object = (second: string): string =>
          `{${[`${JSON.stringify(key)}:1`, ...others, `${second}:2`].join(',')}}`;
        expect(verdict(object(escapedWhole(`${key}+`)))).toBe('good');
        expect(verdict(object(escapedWhole(key)))).toBe('duplicate_key');
      }),
      { numRuns: 60 },
    );
  });

  it('takes no more than a moment for a frame of nothing but keys', () => {
    const keys = Array.from({ length: 200_000 }, (_, n) => `"${n % 2 ? '' : '\\u0041'}${n}":1`);
    const began = process.cpuUsage();
    expect(verdict(`{${keys.join(',')}}`, JSON_LIMITS_EXTENSION)).toBe('good');
    expect(process.cpuUsage(began).user / 1000).toBeLessThan(1_000);
  });

  it('is not slowed down by keys made to collide', () => {
    // "Aa" and "BB" have the same value under the usual multiplication by 31.
    const keys = Array.from({ length: 1 << 14 }, (_, index) =>
      Array.from({ length: 14 }, (_unused, bit) => ((index >> bit) & 1 ? 'Aa' : 'BB')).join(''),
    );
    const began = process.cpuUsage();
    expect(verdict(`{${keys.map((key) => `"${key}":0`).join(',')}}`)).toBe('good');
    expect(process.cpuUsage(began).user / 1000).toBeLessThan(2_000);
  });

  it('counts levels, values, key bytes and digits exactly', () => {
    const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
    expect(verdict(nested(33), JSON_LIMITS)).toBe('good');
    expect(verdict(nested(34), JSON_LIMITS)).toBe('too_deep');
    expect(verdict(`${'['.repeat(32)}1${']'.repeat(32)}`, JSON_LIMITS)).toBe('good');
    expect(verdict(`${'['.repeat(33)}1${']'.repeat(33)}`, JSON_LIMITS)).toBe('too_deep');
    const list = (values: number): string => `[${Array.from({ length: values - 1 }, () => '0').join(',')}]`;
    expect(verdict(list(10_000), JSON_LIMITS)).toBe('good');
    expect(verdict(list(10_001), JSON_LIMITS)).toBe('too_many_values');
    expect(verdict(list(10_001), JSON_LIMITS_EXTENSION)).toBe('good');
    expect(verdict(`{"${'ä'.repeat(2_048)}":0}`)).toBe('good');
    expect(verdict(`{"${'ä'.repeat(2_048)}x":0}`)).toBe('key_too_long');
    expect(verdict(`1${'0'.repeat(4_299)}`)).toBe('good');
    expect(verdict(`1${'0'.repeat(4_300)}`)).toBe('number_out_of_range');
    for (const number of ['1e308', '-1.7976931348623157e308', '1e-400', `0.${'1'.repeat(500)}`, '-0']) {
      expect(verdict(number), number).toBe('good');
    }
    for (const number of ['1e309', '-1e999', '1.8e308', '1E+400'])
      expect(verdict(number), number).toBe('number_out_of_range');
  });

  it('survives a depth bomb of any size without recursion', () => {
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      const levels = 200_000;
      expect(verdict(`${open.repeat(levels)}0${close.repeat(levels)}`)).toBe('too_deep');
      expect(verdict(open.repeat(levels))).toBe('unexpected_end');
    }
  });
});
