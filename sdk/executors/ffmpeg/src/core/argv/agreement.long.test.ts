/**
 * The graph splitter against the real one: ffmpeg is given graphs made of quotes, escapes, blanks and separators, and says in its error
 * message which filter name or which option it read. Ours must have read the same.
 */
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseGraph } from './filtergraph.js';

const FFMPEG = process.env['REELHOST_FFMPEG'] ?? 'ffmpeg';
const RUNS = Number(process.env['REELHOST_FUZZ_RUNS'] ?? 300);

function complaint(graph: string): string {
  const argv = ['-hide_banner', '-nostdin', '-f', 'lavfi', '-i', graph, '-t', '0.01', '-f', 'null', '-'];
  return spawnSync(FFMPEG, argv, { encoding: 'utf8', timeout: 20_000 }).stderr ?? '';
}

const text = (...pieces: string[]): fc.Arbitrary<string> =>
  fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 12 }).map((parts) => parts.join(''));

describe('splitting a graph as the real ffmpeg does', () => {
  it('reads the same filter name', () => {
    let compared = 0;
    fc.assert(
      fc.property(text('q', 'z', "'", '\\', ' ', '\r', '\t', '[', ']', ',', ';', '=', ':', '/', '.'), (graph) => {
        const read = /No such filter: '([\s\S]*?)'\n/.exec(complaint(graph))?.[1];
        const ours = parseGraph(graph);
        if (read === undefined || !ours.ok) return;
        compared++;
        expect(ours.filters.map((filter) => filter.name).find((name) => name !== '')).toBe(read);
      }),
      { numRuns: RUNS },
    );
    expect(compared).toBeGreaterThan(RUNS / 10);
  });

  it('reads the same option names and values', () => {
    let compared = 0;
    fc.assert(
      fc.property(text('q', 'z', "'", '\\', ' ', '\t', '=', ':', '/', '-', '.', 'q=', 'z=', '\\:', '\\\\:'), (args) => {
        const graph = `color=${args}`;
        const read =
          /Could not set non-existent option '([\s\S]*?)' to value '([\s\S]*?)'\n\[|Option '([\s\S]*?)' not found\n/.exec(
            complaint(graph),
          );
        const ours = parseGraph(graph);
        if (read === null || !ours.ok) return;
        compared++;
        const key = read[1] ?? read[3];
        const pairs = ours.filters[0]?.args ?? [];
        expect(pairs.some((pair) => pair.key === key && (read[2] === undefined || pair.value === read[2]))).toBe(true);
      }),
      { numRuns: RUNS },
    );
    expect(compared).toBeGreaterThan(RUNS / 10);
  });
});
