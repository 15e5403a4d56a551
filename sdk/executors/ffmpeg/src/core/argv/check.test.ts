import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ArgvVerdict, checkArgv } from './check.js';
import { parseGraph } from './filtergraph.js';
import { type MemoryEntries, memorySession } from './memory-session.js';
import { pathProblem } from './path-rules.js';

const MEDIA = '\0\0\0\x20ftypisom';

function check(
  argv: string[],
  entries: MemoryEntries = { 'in.mp4': MEDIA },
  more: { tool?: 'ffmpeg' | 'ffprobe'; version?: string } = {},
): ArgvVerdict {
  return checkArgv({
    tool: more.tool ?? 'ffmpeg',
    argv,
    files: memorySession(entries),
    version: more.version ?? '7.1.5',
  });
}

function allowed(argv: string[], entries?: MemoryEntries, more?: { tool?: 'ffmpeg' | 'ffprobe'; version?: string }) {
  const verdict = check(argv, entries, more);
  if (verdict.verdict === 'deny') throw new Error(verdict.message);
  return verdict;
}

function rule(
  argv: string[],
  entries?: MemoryEntries,
  more?: { tool?: 'ffmpeg' | 'ffprobe'; version?: string },
): string {
  const verdict = check(argv, entries, more);
  return verdict.verdict === 'deny' ? verdict.rule : 'allowed';
}

/** The words without the long lists of formats. */
const short = (argv: string[]): string[] =>
  argv.map((word, at) => (argv[at - 1] === '-format_whitelist' ? word.split(',').slice(0, 2).join(',') : word));

describe('what is run', () => {
  it('has both whitelists before every input, behind the input’s own options', () => {
    const argv = allowed(
      [
        '-y',
        '-ss',
        '1',
        '-i',
        'in.mp4',
        '-f',
        'lavfi',
        '-i',
        'anullsrc',
        '-f',
        's16le',
        '-ar',
        '8000',
        '-i',
        'a.raw',
        '-shortest',
        'out.mp4',
      ],
      { 'in.mp4': MEDIA, 'a.raw': 'x' },
    ).rebuild();
    expect(short(argv)).toEqual([
      '-nostdin',
      '-hide_banner',
      '-y',
      '-ss',
      '1',
      '-protocol_whitelist',
      'file,pipe',
      '-format_whitelist',
      'mov,matroska',
      '-i',
      'in.mp4',
      '-f',
      'lavfi',
      '-protocol_whitelist',
      'file,pipe',
      '-format_whitelist',
      'lavfi',
      '-i',
      'anullsrc',
      '-f',
      's16le',
      '-ar',
      '8000',
      '-protocol_whitelist',
      'file,pipe',
      '-format_whitelist',
      's16le',
      '-i',
      'a.raw',
      '-shortest',
      'out.mp4',
    ]);
  });

  it('narrows a named format to that format and a concat list to lists and media', () => {
    expect(short(allowed(['-f', 'mp4', '-i', 'in.mp4', 'o.mkv']).rebuild())).toContain('mov');
    expect(
      short(
        allowed(['-f', 'concat', '-safe', '0', '-i', 'l.txt', '-c', 'copy', 'o.mkv'], {
          'in.mp4': MEDIA,
          'l.txt': 'file in.mp4',
        }).rebuild(),
      ),
    ).toContain('concat,mov');
  });

  it('reports progress where the worker wants it, and not onto an output that is in use', () => {
    const plain = allowed(['-i', 'in.mp4', '-progress', 'pipe:1', 'o.mkv']);
    expect(plain.wantsProgress).toBe(true);
    expect(plain.rebuild({ progress: true }).filter((word) => word === '-progress')).toHaveLength(1);
    expect(plain.rebuild({ progress: 'pipe:3' }).slice(0, 4)).toEqual([
      '-nostdin',
      '-hide_banner',
      '-progress',
      'pipe:3',
    ]);
    const printing = allowed(['-i', 'in.mp4', '-vf', 'metadata=print:file=-', '-f', 'null', '-']);
    expect(printing.model.stdout).toBe('used');
    expect(printing.rebuild({ progress: true })).not.toContain('-progress');
  });

  it('puts a checked script on the command line, so that what was read is what runs', () => {
    const entries = { 'in.mp4': MEDIA, 'g.txt': 'scale=320:-2,\nhue=s=0\n' };
    expect(allowed(['-i', 'in.mp4', '-filter_script:v:0', 'g.txt', 'o.mkv'], entries).rebuild()).toEqual(
      expect.arrayContaining(['-filter:v:0', 'scale=320:-2,\nhue=s=0\n']),
    );
    const complex = allowed(['-i', 'in.mp4', '-filter_complex_script', 'g.txt', 'o.mkv'], entries);
    expect(complex.rebuild()).toContain('-filter_complex');
    expect(complex.rebuild()).not.toContain('g.txt');
    expect(complex.inputs).toEqual(['g.txt', 'in.mp4']);
  });

  it('gives movie= a format whitelist where the version can have one', () => {
    const argv = ['-i', 'in.mp4', '-vf', 'movie=in.mp4 [m];[in][m]overlay', 'o.mkv'];
    expect(
      allowed(argv, undefined, { version: '9.0.2' })
        .rebuild()
        .find((word) => word.startsWith('movie=')),
    ).toMatch(/^movie=in\.mp4 :format_opts=format_whitelist=mov\\,matroska.*\[m\];\[in\]\[m\]overlay$/);
    expect(allowed(argv, undefined, { version: 'N-47683-g0e8eb07980' }).rebuild()).toContain(
      'movie=in.mp4 [m];[in][m]overlay',
    );
    for (const snapshot of ['N-121234-gabcdef0123', '2024-09-01-git-abcdef0123-full_build'])
      expect(allowed(argv, undefined, { version: snapshot }).rebuild().join(' ')).toContain(
        'format_opts=format_whitelist',
      );
    for (const old of ['N-91029-gabcdef0123', '2018-09-01-git-abcdef0123', 'unknown'])
      expect(allowed(argv, undefined, { version: old }).rebuild().join(' ')).not.toContain('format_opts');
  });

  it('keeps ffprobe’s options in front of its one input', () => {
    expect(short(allowed(['in.mp4', '-show_format', '-of', 'json'], undefined, { tool: 'ffprobe' }).rebuild())).toEqual(
      [
        '-hide_banner',
        '-show_format',
        '-of',
        'json',
        '-protocol_whitelist',
        'file,pipe',
        '-format_whitelist',
        'mov,matroska',
        '-i',
        'in.mp4',
      ],
    );
  });

  it('adds neither -y nor -n', () => {
    for (const policy of ['-y', '-n']) expect(allowed([policy, '-i', 'in.mp4', 'o.mkv']).rebuild()).toContain(policy);
    expect(
      allowed(['-i', 'in.mp4', 'o.mkv'])
        .rebuild()
        .filter((word) => word === '-y' || word === '-n'),
    ).toEqual([]);
  });
});

describe('what is told about an accepted argv', () => {
  it('names everything that is read and written, folders to make, and the length', () => {
    const verdict = allowed(
      [
        '-i',
        'in.mp4',
        '-vf',
        'drawtext=fontfile=f.ttf:text=x',
        '-t',
        '00:00:02.5',
        'new/o.mp4',
        '-vn',
        '-t',
        '1',
        'a.wav',
        'p%03d.png',
      ],
      { 'in.mp4': MEDIA, 'f.ttf': 'x' },
    );
    expect(verdict.inputs).toEqual(['in.mp4', 'f.ttf']);
    expect(verdict.outputs).toEqual(['new/o.mp4', 'a.wav', 'p%03d.png']);
    expect(verdict.missingFolders).toEqual(['new']);
    expect(verdict.expectedDurationUs).toBe(2_500_000);
  });
});

describe('how argv is read', () => {
  it.each([
    [['-y', '/x.mp4', '-i', 'in.mp4', 'o.mp4'], 'path.absolute'],
    [['-i', 'in.mp4', '-vn', '/x.wav'], 'path.absolute'],
    [['-i', 'in.mp4', '-f', 'hls', '-hls_base_url', '-i', '/x.m3u8'], 'path.absolute'],
    [['-i', 'in.mp4', '-brandnew', 'x', 'o.mp4'], 'option.unknown'],
    [['-i', 'in.mp4', 'o.mp4', '-c', 'copy'], 'option.trailing'],
    [['-i', 'in.mp4', 'o.mp4', '-y'], 'allowed'],
    [['-f', 'mp4', '-f', 'lavfi', '-i', 'movie=/x', 'o.mp4'], 'path.absolute'],
    [['-f:0', 'lavfi', '-i', 'x', 'o.mp4'], 'option.specifier'],
    [['-i', 'in.mp4', '--', 'o.mp4'], 'argv.double-dash'],
    [['-i', 'in.mp4', '-/vf', 'x', 'o.mp4'], 'path.missing'],
    [['-i', 'in.mp4', '-/metadata', 'x', 'o.mp4'], 'option.from-file'],
    [['-i:0', 'in.mp4', 'o.mp4'], 'option.unknown'],
    [['-i'], 'argv.value-missing'],
    [['-i', 'in.mp4', '-t'], 'argv.value-missing'],
    [['-autorotate', '0', '-i', 'in.mp4', 'o.mp4'], 'option.refused'],
    [['-Y', '-i', 'in.mp4', 'o.mp4'], 'option.unknown'],
    [[], 'argv.empty'],
    [['-y'], 'argv.no-file'],
    [Array.from({ length: 513 }, () => '-y'), 'argv.words'],
    [['-metadata', `a=${'x'.repeat(65_536)}`], 'argv.bytes'],
    [['-metadata', 'a=\0'], 'argv.nul'],
    [['-metadata', 'a=\udc00'], 'argv.unicode'],
  ])('%j: %s', (argv, expected) => {
    expect(rule(argv)).toBe(expected);
  });

  it('takes a word for what the running version takes it', () => {
    const graph = [
      '-i',
      'in.mp4',
      '-vf',
      'split[a][b];[a]palettegen[p];[b][p]paletteuse=bayer:2:rectangle:0:128:x',
      '-f',
      'null',
      '-',
    ];
    expect(rule(graph, undefined, { version: '7.1' })).toBe('filter.option-refused');
  });
});

describe('files of the session', () => {
  it.each<[string, string[], MemoryEntries, string]>([
    ['missing', ['-i', 'x.mp4', 'o.mkv'], {}, 'path.missing'],
    ['a link', ['-i', 'x.mp4', 'o.mkv'], { 'x.mp4': 'link:' }, 'path.symlink'],
    ['below a link', ['-i', 'd/x.mp4', 'o.mkv'], { d: 'link:' }, 'path.symlink'],
    ['a FIFO', ['-i', 'x.mp4', 'o.mkv'], { 'x.mp4': 'special:' }, 'path.special'],
    ['a second hard link', ['-i', 'x.mp4', 'o.mkv'], { 'x.mp4': 'linked:' }, 'path.hardlink'],
    [
      'a second hard link under a template',
      ['-i', 'x.mp4', 'o%d.png'],
      { 'x.mp4': '', 'o1.png': 'linked:' },
      'path.hardlink',
    ],
    [
      'a second hard link where a playlist puts its segments',
      ['-i', 'x.mp4', '-f', 'hls', 'p/o.m3u8'],
      { 'x.mp4': '', 'p/o0.ts': 'linked:' },
      'path.hardlink',
    ],
    [
      'a second hard link as a temporary file',
      ['-i', 'x.mp4', 'o.mkv'],
      { 'x.mp4': '', 'o.mkv.tmp': 'linked:' },
      'path.hardlink',
    ],
    [
      'a second hard link in a folder a template means',
      ['-i', 'x.mp4', 'd%d/o.png'],
      { 'x.mp4': '', 'd1/o.png': 'linked:' },
      'path.hardlink',
    ],
    ['a folder', ['-i', 'd', 'o.mkv'], { 'd/': '' }, 'path.kind'],
    ['a playlist', ['-i', 'x.mp4', 'o.mkv'], { 'x.mp4': '#EXTM3U\n' }, 'content.playlist'],
    ['an output over a link', ['-i', 'in.mp4', 'o.mkv'], { 'in.mp4': MEDIA, 'o.mkv': 'link:' }, 'path.symlink'],
    ['an output over the input', ['-i', 'in.mp4', './in.mp4'], { 'in.mp4': MEDIA }, 'output.is-input'],
    ['an output over the input by case', ['-i', 'in.mp4', 'IN.mp4'], { 'in.mp4': MEDIA }, 'output.is-input'],
    ['numbers over the input', ['-i', 'f7.png', 'f%d.png'], { 'f7.png': 'x' }, 'output.is-input'],
    ['one output twice', ['-i', 'in.mp4', 'o.mkv', 'O.MKV'], { 'in.mp4': MEDIA }, 'output.twice'],
    [
      'a folder with a link, for numbers',
      ['-i', 'in.mp4', 'd/f%d.png'],
      { 'in.mp4': MEDIA, 'd/f1.png': 'link:' },
      'path.symlink',
    ],
    [
      'a two-pass log over a link',
      ['-i', 'in.mp4', '-pass', '1', '-f', 'null', '-'],
      { 'in.mp4': MEDIA, 'ffmpeg2pass-0.log': 'link:' },
      'path.symlink',
    ],
    ['a folder that is a file', ['-i', 'in.mp4', 'in.mp4/o.mkv'], { 'in.mp4': MEDIA }, 'path.kind'],
  ])('%s', (_, argv, entries, expected) => {
    expect(rule(argv, entries)).toBe(expected);
  });
});

describe('any argv', () => {
  const word = fc.oneof(
    fc.constantFrom(
      '-i',
      'in.mp4',
      'o.mkv',
      '-f',
      'lavfi',
      'concat',
      '-vf',
      'null',
      'movie=in.mp4',
      'movie=/x',
      '-',
      '--',
      '-y',
      '/x',
      '../x',
      '-c',
      'copy',
      '-t',
      '1',
      'x.txt',
      '-map',
      '0',
      'a:b',
      '',
      '-filter_complex',
      '[0:v]scale=1:1[v]',
      '[v]',
      '-safe',
      '0',
    ),
    fc.string(),
    fc.string().map((text) => `-${text}`),
  );

  it('gets an answer, and an accepted one names session files only', () => {
    fc.assert(
      fc.property(
        fc.array(word, { maxLength: 12 }),
        fc.constantFrom('ffmpeg' as const, 'ffprobe' as const),
        (argv, tool) => {
          const verdict = check(argv, { 'in.mp4': MEDIA, 'x.txt': 'file in.mp4' }, { tool });
          if (verdict.verdict === 'deny') return;
          for (const path of [...verdict.inputs, ...verdict.outputs]) expect(pathProblem(path)).toBeUndefined();
          for (const file of verdict.model.files)
            if (!(file.role === 'input' && file.kind === 'lavfi') && file.name !== '-')
              expect(pathProblem(file.name)).toBeUndefined();
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('gives every movie= its whitelist as an argument of its own, whatever stands before it', () => {
    const piece = fc.constantFrom(
      'in.mp4',
      'filename=',
      's=dv',
      'enable=1',
      ':',
      ':',
      '\\',
      '\\',
      "'",
      ' ',
      'x',
      '[m];[m]null',
      ',null',
    );
    let seen = 0;
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const graph = `movie=in.mp4${pieces.join('')}`;
        const verdict = check(['-f', 'lavfi', '-i', graph, 'o.mkv'], undefined, { version: '9.0.2' });
        if (verdict.verdict === 'deny') return;
        seen++;
        const before = parseGraph(graph);
        const after = parseGraph(verdict.rebuild().find((word) => word.startsWith('movie=')) ?? '');
        if (!before.ok || !after.ok) throw new Error('an accepted graph cannot be split');
        expect(after.filters.map(({ name }) => name)).toEqual(before.filters.map(({ name }) => name));
        const [own, added] = [before.filters[0]?.args ?? [], after.filters[0]?.args ?? []];
        expect(added.slice(0, -1)).toEqual(own);
        expect(added.at(-1)).toMatchObject({
          key: 'format_opts',
          value: expect.stringMatching(/^format_whitelist=mov,matroska,/),
        });
      }),
      { numRuns: 3_000 },
    );
    expect(seen).toBeGreaterThan(300);
  });

  it('means the same again when it is sent as it was rebuilt', () => {
    const legal = fc
      .subarray(['-ss', '-t', '-r'], { minLength: 0 })
      .chain((options) => fc.tuple(fc.constant(options), fc.array(fc.nat(9), { minLength: 3, maxLength: 3 })));
    fc.assert(
      fc.property(legal, fc.boolean(), ([options, numbers], complex) => {
        const argv = [
          '-y',
          ...options.flatMap((name, at) => [name, String((numbers[at] ?? 0) + 1)]),
          '-i',
          'in.mp4',
          ...(complex ? ['-filter_complex', '[0:v]hue=s=0[v]', '-map', '[v]'] : ['-c', 'copy']),
          'o.mkv',
        ];
        const rebuilt = allowed(argv).rebuild();
        const stripped = rebuilt.filter(
          (one, at) =>
            !/^-(protocol|format)_whitelist$/.test(one) &&
            !/^-(protocol|format)_whitelist$/.test(rebuilt[at - 1] ?? ''),
        );
        expect(allowed(stripped).rebuild()).toEqual(rebuilt);
      }),
    );
  });
});
