/** The hand-written lists against what real builds say about themselves: a new snapshot that disagrees fails here, with the names to review. */
import { describe, expect, it } from 'vitest';
import {
  DEFAULT_FILES,
  FILE_OPTIONS,
  REFUSED_FILTER_FAMILIES,
  REFUSED_FILTER_OPTIONS,
  REFUSED_FILTERS,
  REVIEWED_TEXT,
} from './filter-review.js';
import { filterTable, isTextType } from './filter-table.js';
import { FFMPEG_OPTIONS, FFPROBE_OPTIONS, type OptionRule } from './option-policy.js';
import { FFMPEG_CLI, FFPROBE_CLI } from './tables/cli.js';
import { FILTER_VERSIONS, FILTERS } from './tables/filters.js';
import { columnsFor } from './version.js';

const all = FILTER_VERSIONS.map((_, column) => column);
const allowed = Object.keys(FILTERS).filter(
  (name) => !Object.hasOwn(REFUSED_FILTERS, name) && !REFUSED_FILTER_FAMILIES.test(name),
);

describe.each([
  ['ffmpeg', FFMPEG_OPTIONS, FFMPEG_CLI],
  ['ffprobe', FFPROBE_OPTIONS, FFPROBE_CLI],
] as const)('the options of %s', (_, options, cli) => {
  it('take as many words as every known release takes', () => {
    const wrong: string[] = [];
    for (const [given, rule] of options as ReadonlyMap<string, OptionRule>) {
      const name = given.replace(/^\//, '');
      const negated = !Object.hasOwn(cli, name) && name.startsWith('no');
      const arities = (cli[negated ? name.slice(2) : name] ?? '').replaceAll('-', '');
      // A negation never takes a word, whatever the option itself takes.
      if (negated ? arities === '' : [...arities].some((one) => one !== 'x' && one !== String(rule.arity)))
        wrong.push(`${name}: ${arities}`);
    }
    // -isync is no option at all in the oldest snapshot's help, where it matched another; it takes a word wherever it exists.
    expect(wrong.filter((one) => !one.startsWith('isync:'))).toEqual([]);
  });
});

describe('the reviewed filters', () => {
  it('have every text option judged: a file, refused, or looked at and harmless', () => {
    const unjudged: string[] = [];
    for (const filter of allowed) {
      for (const [option, type] of filterTable(filter, all)?.named ?? []) {
        if (!isTextType(type) || option === 'enable') continue;
        const judged =
          Object.hasOwn(FILE_OPTIONS[filter] ?? {}, option) ||
          Object.hasOwn(REFUSED_FILTER_OPTIONS[filter] ?? {}, option) ||
          (REVIEWED_TEXT[filter] ?? '').split(' ').includes(option);
        if (!judged) unjudged.push(`${filter} ${option}`);
      }
    }
    expect(unjudged).toEqual([]);
  });

  it('are filters that exist, with options that exist', () => {
    const unknown: string[] = [];
    for (const list of [FILE_OPTIONS, REFUSED_FILTER_OPTIONS]) {
      for (const [filter, options] of Object.entries(list)) {
        for (const option of Object.keys(options))
          if (filterTable(filter, all)?.named.has(option) !== true) unknown.push(`${filter} ${option}`);
      }
    }
    for (const [filter, { option }] of Object.entries(DEFAULT_FILES))
      if (FILE_OPTIONS[filter]?.[option] === undefined) unknown.push(filter);
    expect(unknown).toEqual([]);
  });

  it.each([
    ['movie', 0, 'filename'],
    ['drawtext', 0, 'fontfile'],
    ['drawtext', 2, 'textfile'],
    ['subtitles', 0, 'filename'],
    ['subtitles', 2, 'fontsdir'],
    ['ass', 2, 'fontsdir'],
    ['metadata', 5, 'file'],
    ['psnr', 0, 'stats_file'],
    ['curves', 6, 'psfile'],
    ['curves', 7, 'plot'],
    ['selectivecolor', 10, 'psfile'],
    ['deshake', 10, 'filename'],
    ['showcqt', 19, 'fontfile'],
    ['showcqt', 22, 'axisfile'],
    ['vidstabdetect', 0, 'result'],
    ['vidstabtransform', 13, 'debug'],
    ['firequalizer', 9, 'dumpfile'],
    ['lut3d', 0, 'file'],
    ['loudnorm', 11, 'stats_file'],
    ['paletteuse', 5, 'debug_kdtree'],
    ['paletteuse', 6, 'debug_kdtree'],
  ])('%s takes its value number %i as %s', (filter, place, option) => {
    expect(filterTable(filter, all)?.byPlace[place]).toContain(option);
  });
});

describe('the versions an argv must be safe under', () => {
  it.each([
    ['5.1.9-0+deb12u1', ['5.1']],
    ['7.1.5', ['7.1']],
    ['n9.0.2-17-g2a571b6068-20260930', ['9.0']],
    ['6.0', ['5.1', '7.0']],
    ['8.1.2', ['7.1', '9.0']],
    ['3.4', ['4.1']],
    ['12.0', ['9.0']],
    ['N-47683-g0e8eb07980-static', [...FILTER_VERSIONS]],
    ['unknown', [...FILTER_VERSIONS]],
  ])('%s: %j', (version, labels) => {
    expect(columnsFor(version).map((column) => FILTER_VERSIONS[column])).toEqual(labels);
  });
});
