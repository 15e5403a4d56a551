import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeUtf8, parseConcatList } from './concat-list.js';
import { encoderParamsProblem } from './encoder-params.js';
import { playlistKind } from './sniff.js';
import { timeUs } from './time.js';

describe('a concat list', () => {
  it.each([
    ["file 'a b.mp4'\n", ['a b.mp4']],
    ["file 'it'\\''s.mp4'", ["it's.mp4"]],
    ['file a\\ b.mp4', ['a b.mp4']],
    [
      'ffconcat version 1.0\r\n# file x\r\n\r\nfile a.mp4\r\nduration 3\ninpoint 0.5\noutpoint 00:00:01.5\nfile b.mp4',
      ['a.mp4', 'b.mp4'],
    ],
    [' \t file\ta.mp4', ['a.mp4']],
    ['file a.mp4\rfile /x', ['a.mp4', '/x']],
  ])('%j names %j', (text, files) => {
    const list = parseConcatList(text);
    expect(list.ok && list.files.map((file) => file.name)).toEqual(files);
  });

  it.each([
    ['option safe 0\nfile a', 'list.option'],
    ['file a\nexec x', 'list.directive'],
    ["file 'a", 'list.syntax'],
    ['file', 'list.syntax'],
    ['# nothing', 'list.syntax'],
    ['file a\0b', 'list.syntax'],
    ['\ufefffile a', 'list.directive'],
    ['file a\nduration /etc', 'list.syntax'],
  ])('%j is refused (%s)', (text, rule) => {
    const list = parseConcatList(text);
    expect(list.ok ? 'accepted' : list.problem.rule).toBe(rule);
  });
});

describe('decoding UTF-8', () => {
  it('agrees with the runtime on every text and marks what is not valid', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 20 }), (text) => {
        expect(decodeUtf8(Buffer.from(text, 'utf8').toString('latin1'))).toBe(
          Buffer.from(text, 'utf8').toString('utf8'),
        );
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const ours = decodeUtf8(Buffer.from(bytes).toString('latin1'));
        const theirs = Buffer.from(bytes).toString('utf8');
        expect(ours.includes('\ufffd')).toBe(theirs.includes('\ufffd'));
        if (!theirs.includes('\ufffd')) expect(ours).toBe(theirs);
      }),
    );
  });
});

describe('recognising files that name other files', () => {
  it.each([
    '#EXTM3U\n',
    '\u00ef\u00bb\u00bf#EXTM3U',
    '\n\n #extm3u',
    'ffconcat version 1.0',
    '<?xml version="1.0"?><MPD>',
    `${'x'.repeat(9_000)}<mpd `,
    'v=0\r\no=-',
    'x\nc=IN IP4 1.1.1.1',
    '# VobSub index file, v7',
    '[playlist]',
    '<svg>',
    '<!-- x --><MPD',
  ])('%j', (text) => {
    expect(playlistKind(text)).toBeDefined();
  });
  it.each([
    '\0\0\0\x20ftypisom<MPD',
    '1\n00:00:00,000 --> 00:00:01,000\nhi',
    'WEBVTT\n',
    '[Script Info]',
    ';FFMETADATA1',
    'RIFF',
    '',
    'TITLE "x"\nLUT_3D_SIZE 2',
  ])('but not %j', (text) => {
    expect(playlistKind(text)).toBeUndefined();
  });
});

describe('encoder parameters', () => {
  it.each([
    ['x264-params', 'keyint=48:min-keyint=48:no-scenecut=1:nal-hrd=cbr'],
    ['x264opts', 'bframes=2:ref=3:psy-rd=1.0,0.15:deblock=-1,-1:no_deblock'],
    [
      'x265-params',
      'log-level=error:keyint=24:pools=none:no-open-gop=1:hdr10=1:master-display=G(1,2)B(3,4)R(5,6)WP(7,8)L(9,1)',
    ],
    ['svtav1-params', 'tune=0:film-grain=8:keyint=10s'],
    ['aom-params', 'enable-cdef=1'],
    ['x264-params', ''],
  ])('-%s %s', (option, value) => {
    expect(encoderParamsProblem(option, value)).toBeUndefined();
  });
  it.each([
    'stats=x',
    'dump-yuv=x',
    'dump_yuv=x',
    'no-stats=x',
    'cqmfile=x',
    'keyint=1:stats=x',
    'log-file=x',
    'opencl-clbin=x',
    'zones=/etc/passwd',
    'keyint=/x',
    'keyint=1\\:stats=x',
    "keyint='1'",
    'STATS=x',
    ' stats =x',
    'nostats',
  ])('but not x264 %j', (value) => {
    expect(encoderParamsProblem('x264-params', value)).toBeDefined();
  });
});

describe('times', () => {
  it.each([
    ['12.5', 12_500_000],
    ['00:01:30.25', 90_250_000],
    ['1:30', 90_000_000],
    ['500ms', 500_000],
    ['20us', 20],
    ['-1.5', -1_500_000],
    ['-00:00:01', -1_000_000],
    ['.5', 500_000],
    ['x', undefined],
    ['', undefined],
  ])('%j is %j microseconds', (text, us) => {
    expect(timeUs(text)).toBe(us);
  });
});
