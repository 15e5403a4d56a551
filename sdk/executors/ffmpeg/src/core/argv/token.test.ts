import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readPairs, readToken } from './token.js';

const token = (text: string, ends = ','): string => readToken({ text, at: 0 }, ends).value;

describe('splitting as av_get_token does', () => {
  it.each([
    ['plain', 'plain'],
    ['  blanks around \t', 'blanks around'],
    ["' kept '", ' kept '],
    ['a\\ ', 'a '],
    ['a\\,b,c', 'a,b'],
    ["a','b,c", 'a,b'],
    ["'It'\\''s'", "It's"],
    ['mo\\vie', 'movie'],
    ["m'ov'ie", 'movie'],
    ['end\\', 'end\\'],
    ["'a\\'b", 'a\\b'],
    ['\n\tmovie\n', 'movie'],
    ['', ''],
  ])('%j is %j', (text, value) => {
    expect(token(text)).toBe(value);
  });

  it('says when a quote never ends', () => {
    expect(readToken({ text: "a'b", at: 0 }, ',')).toEqual({ value: 'ab', unterminated: true });
  });

  it('gives back any text that was escaped character by character, or quoted', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (text) => {
        expect(token([...text].map((c) => `\\${c}`).join(''))).toBe(text);
        expect(token(`'${text.replaceAll("'", "'\\''")}'`)).toBe(text);
      }),
    );
  });
});

describe('splitting options', () => {
  it.each([
    [
      'a=1:b=2',
      [
        ['a', '1'],
        ['b', '2'],
      ],
    ],
    [
      '1:b=2',
      [
        [undefined, '1'],
        ['b', '2'],
      ],
    ],
    [
      ' a = 1 : b',
      [
        ['a', '1'],
        [undefined, 'b'],
      ],
    ],
    [
      "text='a:b':x=1",
      [
        ['text', 'a:b'],
        ['x', '1'],
      ],
    ],
    [
      'a\\:b:c',
      [
        [undefined, 'a:b'],
        [undefined, 'c'],
      ],
    ],
    ['/w=x', [['/w', 'x']]],
    ['text\\file=x', [[undefined, 'textfile=x']]],
    ['expr=gt(a=b)', [['expr', 'gt(a=b)']]],
    ['a==b', [['a', '=b']]],
    ['=x', [['', 'x']]],
  ])('%j', (text, pairs) => {
    expect(readPairs(text, ':').map((pair) => [pair.key, pair.value])).toEqual(pairs);
  });
});
