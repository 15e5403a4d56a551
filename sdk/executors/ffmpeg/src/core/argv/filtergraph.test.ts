import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type GraphFilter, parseGraph } from './filtergraph.js';

function filters(text: string): GraphFilter[] {
  const graph = parseGraph(text);
  if (!graph.ok) throw new Error(graph.problem.message);
  return graph.filters;
}

const names = (text: string): string[] => filters(text).map((filter) => filter.name);

describe('a filtergraph', () => {
  it.each([
    ['movie=/x', ['movie']],
    ['mo\\vie=/x[m];[in][m]overlay', ['movie', 'overlay']],
    ["'movie'=/x", ['movie']],
    ["m'ov'ie=/x", ['movie']],
    ['movie@a1=/x', ['movie']],
    [' movie = /x [m];[in][m] overlay', ['movie', 'overlay']],
    ['\n\tmovie\n=\n/x', ['movie']],
    ["drawtext=text='[in];movie=/etc/passwd',null", ['drawtext', 'null']],
    ['sws_flags=bicubic;[0:v]scale@small=80:60[v]', ['scale']],
    ['[a][b]hstack[c];[c]null', ['hstack', 'null']],
    ['scale=1:1;', ['scale']],
  ])('%j holds %j', (text, expected) => {
    expect(names(text)).toEqual(expected);
  });

  it.each([
    ["drawtext=text='never ends", 'quote'],
    ['[in scale', 'label'],
    ['[]scale', 'label'],
    ['scale=1:1,', 'ends with'],
    ['scale=1:1]', 'stands where'],
    [',scale', 'missing'],
    ['', 'missing'],
    ['sws_flags=/w=x;null', 'sws_flags'],
    ['null=a\\', 'backslash'],
    ["drawtext=text=\\'never ends", 'quote'],
  ])('%j is refused: %s', (text, word) => {
    const graph = parseGraph(text);
    expect(graph.ok).toBe(false);
    if (!graph.ok) expect(graph.problem.message).toContain(word);
  });

  it('finds a filter name under any quoting', () => {
    const spelling = fc
      .tuple(...[...'movie'].map((c) => fc.constantFrom(c, `\\${c}`, `'${c}'`, `''${c}`)))
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(
        spelling,
        fc.constantFrom('', ' ', '\n', '\t', '\r'),
        fc.constantFrom('', '@x', '@'),
        (name, blank, instance) => {
          expect(names(`null,${blank}${name}${instance}${blank}=${blank}/x`)).toEqual(['null', 'movie']);
        },
      ),
    );
  });

  it('gives back any option value that was quoted for both levels', () => {
    const level = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
    fc.assert(
      fc.property(fc.string(), (value) => {
        const [filter] = filters(`drawtext=${level(`text=${level(value)}`)}[out]`);
        expect(filter?.args).toEqual([{ key: 'text', value, unterminated: false }]);
      }),
    );
  });
});
