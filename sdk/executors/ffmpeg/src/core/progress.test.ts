import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { durationFromArgv, durationFromInputs, InputDurations, parseDurationUs } from './duration.js';
import { formatTime, ProgressMeter, ProgressParser } from './progress.js';

const block = (fields: Record<string, string | number>, end = 'continue'): string =>
  `${Object.entries(fields)
    .map(([key, value]) => `${key}=${value}`)
    .join('\n')}\nprogress=${end}\n`;

describe('progress of an encode', () => {
  it('reads frame, time, speed and size, whatever pieces the text arrives in', () => {
    const text = block({
      frame: 75,
      fps: '24.8',
      out_time_us: 3_000_000,
      out_time: '00:00:03.000000',
      total_size: 4096,
      speed: '1.98x',
    });
    fc.assert(
      fc.property(fc.array(fc.nat({ max: text.length }), { maxLength: 12 }), (cuts) => {
        const parser = new ProgressParser();
        const at = [0, ...cuts.sort((a, b) => a - b), text.length];
        const blocks = at.slice(1).flatMap((to, index) => parser.feed(text.slice(at[index], to)));
        expect(blocks).toEqual([
          { frame: 75, fps: 24.8, outTimeUs: 3_000_000, totalBytes: 4096, speed: 1.98, ended: false },
        ]);
      }),
    );
  });

  it('takes N/A, negative times and nonsense as unknown', () => {
    const parser = new ProgressParser();
    const text = block(
      { frame: 'N/A', out_time_us: '-9223372036854775808', speed: 'N/A', fps: 'nan', total_size: '' },
      'end',
    );
    expect(parser.feed(text)).toEqual([{ ended: true }]);
  });

  it('holds no more than a line, and recovers after a megabyte without one', () => {
    const parser = new ProgressParser();
    for (let n = 0; n < 64; n += 1) expect(parser.feed('x'.repeat(16_384))).toEqual([]);
    expect(parser.feed(`\n${block({ frame: 1 })}`)).toEqual([{ frame: 1, ended: false }]);
  });

  it('never reports NaN, never falls, and stays below 100 until told that the exit code was 0', () => {
    const value = fc.oneof(
      fc.integer({ min: -1000, max: 20_000_000 }).map(String),
      fc.constantFrom('N/A', 'nan', 'inf', '-9223372036854775808', ''),
    );
    fc.assert(
      fc.property(
        fc.array(value),
        fc.option(fc.integer({ min: 0, max: 9_000_000 }), { nil: undefined }),
        (times, durationUs) => {
          const parser = new ProgressParser();
          const meter = new ProgressMeter('ffmpeg', durationUs);
          let last = 0;
          for (const out_time_us of times) {
            for (const each of parser.feed(block({ out_time_us, speed: '2x' }))) {
              const report = meter.report(each);
              if (!durationUs) expect(report.percent).toBeUndefined();
              if (report.percent === undefined) continue;
              expect(report.percent).toBeGreaterThanOrEqual(last);
              expect(report.percent).toBeLessThan(100);
              last = report.percent;
            }
          }
          expect(meter.finished().percent).toBe(100);
        },
      ),
    );
  });

  it('tells speed and the time that is left', () => {
    const meter = new ProgressMeter('ffmpeg', 10e6);
    expect(meter.report({ outTimeUs: 2.5e6, speed: 2.5, frame: 62, ended: false })).toEqual({
      stage: 'ffmpeg',
      percent: 25,
      detail: 'frame 62, time 0:02.5, speed 2.5x, eta 0:03',
    });
    expect(formatTime(3725.5)).toBe('1:02:05.5');
    expect(formatTime(59.96)).toBe('1:00');
  });

  it('learns a length that only the log tells, and does not fall because of it', () => {
    const meter = new ProgressMeter('ffmpeg');
    expect(meter.report({ outTimeUs: 5e6, ended: false }).percent).toBeUndefined();
    meter.learnDuration(10e6);
    expect(meter.report({ outTimeUs: 5e6, ended: false }).percent).toBe(50);
    meter.learnDuration(100e6);
    expect(meter.report({ outTimeUs: 6e6, ended: false }).percent).toBe(60);
  });
});

describe('the expected length of an output', () => {
  it.each([
    ['90', 90e6],
    ['1.5', 1.5e6],
    ['1500ms', 1.5e6],
    ['200us', 200],
    ['01:30', 90e6],
    ['01:00:30.25', 3630.25e6],
    ['nonsense', undefined],
    ['-5', undefined],
  ])('reads the duration %s', (text, us) => {
    expect(parseDurationUs(text)).toBe(us);
  });

  it.each<[string, number | undefined]>([
    ['-i a.mp4 -t 5 out.mp4', 5e6],
    ['-ss 2 -i a.mp4 -to 7 out.mp4', 7e6],
    ['-i a.mp4 -ss 2 -to 7 out.mp4', 5e6],
    ['-t 3 -i a.mp4 out.mp4', undefined],
  ])('from the argv: %s', (argv, us) => {
    expect(durationFromArgv(argv.split(' '))).toBe(us);
  });

  it.each<[string, (number | undefined)[], number | undefined]>([
    ['-i a.mp4 out.mp4', [8e6], 8e6],
    ['-ss 2 -i a.mp4 out.mp4', [8e6], 6e6],
    ['-ss 2 -t 1 -i a.mp4 out.mp4', [8e6], 1e6],
    ['-i a.mp4 -i b.wav out.mp4', [8e6, 12e6], 12e6],
    ['-i a.mp4 -ss 3 out.mp4', [8e6], 5e6],
    ['-i a.mp4 -vf setpts=2*PTS out.mp4', [8e6], undefined],
    ['-i a.mp4 -i b.mp4 -filter_complex [0:v][1:v]concat=n=2 out.mp4', [8e6, 8e6], undefined],
    ['-loop 1 -i a.png out.mp4', [40_000], undefined],
    ['-i a.mp4 out.mp4', [undefined], undefined],
  ])('from the inputs: %s', (argv, inputs, us) => {
    expect(durationFromInputs(argv.split(' '), inputs)).toBe(us);
  });

  it('finds the lengths of inputs in the log and ignores look-alikes in metadata', () => {
    const log = new InputDurations();
    log.feed("Input #0, mov, from 'a.mp4':\n  Metadata:\n    title           : Duration: 99:00:00.00, x\n  Dura");
    log.feed("tion: 00:00:08.50, start: 0.000000\nInput #1, image2, from 'b.png':\n  Duration: N/A, bitrate: N/A\n");
    expect(log.found).toEqual([8.5e6, undefined]);
  });
});
