/** Cutting JSON text apart and putting it together again loses nothing. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { memberText, RawJson, slicesOf, stringifyWithRaw, utf8Bytes } from './raw-json.js';

const spaced = (text: string): string => text.replaceAll(',', ' ,\n').replaceAll(':', ' : ');

test('every member and element is found, exactly as written', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 })), fc.array(fc.jsonValue({ maxDepth: 3 }))),
      (value) => {
        const text = JSON.stringify(value);
        const parsed = JSON.parse(text) as Record<string, unknown>;
        const found = slicesOf(text).map((slice) => [slice.key, JSON.parse(text.slice(slice.start, slice.end))]);
        expect(found).toEqual(Object.keys(JSON.parse(`[${text}]`)[0]).map((key) => [key, parsed[key]]));
      },
    ),
  );
});

test('white space anywhere changes nothing', () => {
  const text = spaced('{"a":[1,2,{"b":null}],"c":"d\\"e","f":-1.5e+3,"g":true}');
  expect(slicesOf(text).map((slice) => slice.key)).toEqual(['a', 'c', 'f', 'g']);
  expect(memberText(text, 'f')).toBe('-1.5e+3');
  expect(memberText(text, 'c')).toBe('"d\\"e"');
});

test('the last of repeated keys counts, escaped keys are read, a missing one is missing', () => {
  expect(memberText('{"a":1,"\\u0061":2}', 'a')).toBe('2');
  expect(memberText('{"a":1}', 'b')).toBeUndefined();
  expect(memberText('[1]', '1')).toBeUndefined();
  expect(memberText('"text"', 'a')).toBeUndefined();
  expect(memberText('{"a\\\\":1,"b":"\\\\"}', 'b')).toBe('"\\\\"');
});

test('a raw member is inserted as it is, undefined members are left out', () => {
  expect(stringifyWithRaw({ a: 1, b: undefined, c: new RawJson('{ "x": 1.0 }') })).toBe('{"a":1,"c":{ "x": 1.0 }}');
});

test('UTF-8 bytes are those of the encoder', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(utf8Bytes(text)).toBe(new TextEncoder().encode(text).length);
    }),
  );
  expect(utf8Bytes('\ud800')).toBe(3);
});
