/**
 * Whole pipelines with a real ffmpeg, validator and (where there is one) sandbox in force: what an engine does in a video.analyze.extract and in a
 * video.compile session. They run with the ffmpeg of the tests, and again with a current one where REELHOST_CURRENT_FFMPEG names it.
 */
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type MediaKit, type MediaSession, openMediaKit } from './media-session.test-kit.js';

const current = process.env['REELHOST_CURRENT_FFMPEG'];
const builds: [string, Record<string, string | undefined>][] = [
  ['the ffmpeg of the tests', {}],
  ...(current ? [['a current ffmpeg', { REELHOST_FFMPEG: current }] as [string, Record<string, string>]] : []),
];
/** A clip with cuts each second and a second of silence; every pipeline starts from it. */
const SOURCE =
  "-f lavfi -i color=c=red:size=320x180:rate=25:duration=4,drawbox=c=blue:t=fill:enable='mod(floor(t),2)' -f lavfi -i sine=frequency=440:sample_rate=48000:duration=4 " +
  "-af volume=0:enable='between(t,1,2.5)' -c:v libx264 -preset ultrafast -pix_fmt yuv420p -g 25 -c:a aac -shortest";

describe.each(builds)('with %s', (_name, variables) => {
  let kit: MediaKit;
  let s: MediaSession;
  beforeAll(async () => {
    kit = await openMediaKit({ ...process.env, ...variables });
  });
  afterAll(() => kit.close());

  describe('an analyze.extract session', () => {
    beforeAll(async () => {
      s = await kit.session();
      await s.encode(`${SOURCE} in.mp4`);
    });

    it('probes streams, format and packets', async () => {
      const probe = await s.probe('-show_streams -show_format in.mp4');
      expect(probe.streams.map((each) => each.codec_name)).toEqual(['h264', 'aac']);
      expect(Number(probe.format.duration)).toBeCloseTo(4, 0);
      const counted = await s.probe('-count_frames -select_streams v:0 -show_entries stream=nb_read_frames in.mp4');
      expect(counted.streams[0]?.nb_read_frames).toBe('100');
    });

    it('finds silence and shots from the log', async () => {
      const silence = await s.encode('-i in.mp4 -vn -af silencedetect=noise=-30dB:d=0.5 -f null -');
      expect(silence).toMatch(/silence_start: 1\.?\d*/);
      expect(silence).toMatch(/silence_end: 2\.\d+ \| silence_duration: 1\.\d+/);
      const shots = await s.encode([
        '-i',
        'in.mp4',
        '-an',
        '-vf',
        "select='gt(scene,0.3)',showinfo",
        '-f',
        'null',
        '-',
      ]);
      expect([...shots.matchAll(/pts_time:(\d)/g)].map((match) => match[1])).toEqual(['1', '2', '3']);
    });

    it('extracts 16 kHz mono sound, a grid of frames, keyframes and a single still', async () => {
      await s.encode('-i in.mp4 -vn -ac 1 -ar 16000 -c:a pcm_s16le speech.wav');
      expect((await s.probe('-show_streams speech.wav')).streams[0]).toMatchObject({
        codec_name: 'pcm_s16le',
        sample_rate: '16000',
        channels: 1,
      });
      await s.encode('-i in.mp4 -an -vf fps=1,scale=160:-2,tile=2x2 -frames:v 1 -y grid.jpg');
      expect((await s.probe('-show_streams grid.jpg')).streams[0]).toMatchObject({ width: 320, height: 180 });
      // ffmpeg 9 knows no -vsync any more, builds before 5.1 no -fps_mode.
      const passthrough = (kit.services.programs.parsed.major ?? 0) >= 6 ? '-fps_mode passthrough' : '-vsync 0';
      await s.encode(`-skip_frame nokey -i in.mp4 -an ${passthrough} -q:v 3 keyframes/%04d.jpg`);
      expect((await readdir(join(s.dir, 'keyframes'))).length).toBe(4);
      await s.encode('-ss 1.5 -i in.mp4 -frames:v 1 still.png');
      expect((await s.probe('-show_streams still.png')).streams[0]).toMatchObject({ codec_name: 'png', width: 320 });
    });

    it('makes the inputs of chroma tracking', async () => {
      await s.encode(
        '-f lavfi -i color=c=0x00ff00:size=160x90:rate=10:duration=1,drawbox=x=40:y=20:w=60:h=40:c=red:t=fill -c:v libx264 -preset ultrafast green.mp4',
      );
      await s.encode(
        '-i green.mp4 -i in.mp4 -filter_complex [0:v]chromakey=0x00ff00:0.2:0.1[k];[1:v]scale=160:90[b];[b][k]overlay=shortest=1[v] -map [v] -an -t 1 keyed.mp4',
      );
      await s.encode(
        '-i green.mp4 -vf chromakey=0x00ff00:0.2:0.1,format=yuva420p,alphaextract,fps=5 -an mask/%03d.png',
      );
      expect((await readdir(join(s.dir, 'mask'))).length).toBeGreaterThanOrEqual(5);
    });
  });

  describe('a compile session', () => {
    beforeAll(async () => {
      s = await kit.session();
      await s.encode(`${SOURCE} in.mp4`);
      await s.encode('-f lavfi -i color=c=white@0.5:size=64x64:rate=1:duration=1,format=rgba -frames:v 1 logo.png');
    });

    it('trims, joins, overlays, titles and mixes in one graph', async () => {
      const graph = [
        '[0:v]trim=0:1.5,setpts=PTS-STARTPTS[v0]',
        '[0:v]trim=2:3.5,setpts=PTS-STARTPTS[v1]',
        '[0:a]atrim=0:1.5,asetpts=PTS-STARTPTS[a0]',
        '[0:a]atrim=2:3.5,asetpts=PTS-STARTPTS[a1]',
        '[v0][a0][v1][a1]concat=n=2:v=1:a=1[vc][ac]',
        "[vc][1:v]overlay=x=W-w-8:y=8,drawtext=text='Hello, world':fontsize=24:fontcolor=white:x=(w-tw)/2:y=h-40[v]",
        '[ac]afade=t=in:d=0.2,volume=0.8[a]',
      ].join(';');
      await s.encode([
        '-i',
        'in.mp4',
        '-i',
        'logo.png',
        '-filter_complex',
        graph,
        '-map',
        '[v]',
        '-map',
        '[a]',
        '-c:v',
        'libx264',
        '-preset',
        'ultrafast',
        '-pix_fmt',
        'yuv420p',
        '-c:a',
        'aac',
        '-movflags',
        '+faststart',
        '-y',
        'cut.mp4',
      ]);
      const probe = await s.probe('-show_streams -show_format cut.mp4');
      expect(Number(probe.format.duration)).toBeCloseTo(3, 0);
      expect(probe.streams).toHaveLength(2);
    });

    it('burns in subtitles from a session file, with the bundled font', async () => {
      await writeFile(join(s.dir, 'subs.srt'), '1\n00:00:00,200 --> 00:00:02,000\nGrüße aus der Session\n');
      const log = await s.encode('-i in.mp4 -vf subtitles=subs.srt -t 1 -c:v libx264 -preset ultrafast -an subbed.mp4');
      expect(log).toContain('DejaVu');
      const plain = await s.encode('-i in.mp4 -ss 0.5 -frames:v 1 plain.png');
      await s.encode('-i subbed.mp4 -ss 0.5 -frames:v 1 subbed.png');
      expect(plain).toBeTruthy();
      expect((await s.file('subbed.png')).equals(await s.file('plain.png'))).toBe(false);
    });

    it('draws text in the bundled font and in one of the session', async () => {
      await s.encode([
        '-i',
        'in.mp4',
        '-vf',
        "drawtext=font='DejaVu Sans Mono':text='%{pts\\:hms}':fontcolor=white",
        '-frames:v',
        '1',
        'named.png',
      ]);
      await s.encode(['-i', 'in.mp4', '-vf', 'drawtext=text=x:fontcolor=white', '-frames:v', '1', 'default.png']);
      const { folder } = await import('./fonts.js').then(({ openFontSet }) => openFontSet(kit.folder));
      const { copyFile } = await import('node:fs/promises');
      await copyFile(join(folder, 'DejaVuSerif.ttf'), join(s.dir, 'title.ttf'));
      await writeFile(join(s.dir, 'title.txt'), 'From a file');
      await s.encode([
        '-i',
        'in.mp4',
        '-vf',
        'drawtext=fontfile=title.ttf:textfile=title.txt:fontcolor=white',
        '-frames:v',
        '1',
        'filed.png',
      ]);
    });

    it('normalises loudness in two passes, the second built from what the first measured', async () => {
      const first = await s.encode('-i in.mp4 -vn -af loudnorm=I=-16:TP=-1.5:LRA=11:print_format=json -f null -');
      const measured = JSON.parse(first.slice(first.lastIndexOf('{'), first.lastIndexOf('}') + 1)) as Record<
        string,
        string
      >;
      const second = `loudnorm=I=-16:TP=-1.5:LRA=11:measured_I=${measured['input_i']}:measured_TP=${measured['input_tp']}:measured_LRA=${measured['input_lra']}:measured_thresh=${measured['input_thresh']}:offset=${measured['target_offset']}:linear=true`;
      await s.encode(['-i', 'in.mp4', '-af', second, '-c:v', 'copy', '-c:a', 'aac', '-ar', '48000', 'loud.mp4']);
      expect((await s.probe('-show_streams loud.mp4')).streams[1]).toMatchObject({
        codec_name: 'aac',
        sample_rate: '48000',
      });
    });

    it('joins files by a list of the session without encoding', async () => {
      await s.encode('-ss 0 -i in.mp4 -t 1 -c copy part1.mp4');
      await s.encode('-ss 2 -i in.mp4 -t 1 -c copy part2.mp4');
      await writeFile(join(s.dir, 'list.txt'), "file 'part1.mp4'\nfile 'part2.mp4'\n");
      await s.encode('-f concat -safe 0 -i list.txt -c copy joined.mp4');
      const { format } = await s.probe('-show_format joined.mp4');
      expect(Number(format.duration)).toBeGreaterThan(1.8);
      expect(Number(format.duration)).toBeLessThan(3.2);
    });

    it('changes the container without encoding, and encodes in two passes', async () => {
      await s.encode('-i in.mp4 -c copy -map 0 out.mkv');
      await s.encode('-i in.mp4 -c copy -bsf:v h264_mp4toannexb out.ts');
      expect((await s.probe('-show_format out.mkv')).format.format_name).toContain('matroska');
      await s.encode('-i in.mp4 -an -t 1 -c:v libx264 -b:v 200k -pass 1 -passlogfile two -f null -');
      await s.encode('-i in.mp4 -an -t 1 -c:v libx264 -b:v 200k -pass 2 -passlogfile two two.mp4');
      expect((await s.file('two.mp4')).length).toBeGreaterThan(1000);
    });

    it('leaves nothing when it is closed', async () => {
      await s.op('close');
      expect(await readdir(s.dir)).toEqual([]);
      await rm(s.dir, { recursive: true });
    });
  });
});
