/**
 * Which demuxers and muxers may be used, which muxer an output name chooses, and which format whitelist goes before which input. A
 * demuxer that opens other files, the network, a device, or shows any text file as video is on no list.
 */
import { MUXER_EXTENSIONS } from './tables/names.js';
import type { Problem } from './verdict.js';

/** Demuxers for session media. Names as ffmpeg lists them; one of a demuxer's several names is enough for -format_whitelist. */
export const MEDIA_DEMUXERS: readonly string[] = (
  'mov matroska mpegts mp3 wav aac flac ogg avi gif image2 png_pipe jpeg_pipe webp_pipe srt ass webvtt ffmetadata ' +
  'flv asf mpeg mpegvideo m4v h263 h264 hevc vvc av1 obu ivf vc1 mjpeg dv mxf gxf nut rm w64 aiff au caf ac3 eac3 dts truehd mlp amr amrnb amrwb ape tta wv tak ' +
  'gsm voc apng bmp_pipe tiff_pipe gif_pipe jpegxl_pipe jpegxl_anim webp_anim qoi_pipe ppm_pipe pgm_pipe pbm_pipe pam_pipe exr_pipe dpx_pipe psd_pipe tga_pipe j2k_pipe hdr_pipe ico ' +
  'yuv4mpegpipe dnxhd dirac sup microdvd mpl2 jacosub sami subviewer subviewer1 stl scc lrc xwma wtv loas latm spdif oma qcp sbc aptx aptx_hd live_flv'
).split(' ');

/** Demuxers that need their format named with -f: raw samples and pictures, and the two that are checked in their own way. */
const RAW_DEMUXERS =
  'rawvideo s8 u8 s16le s16be s24le s24be s32le s32be u16le u16be u24le u24be u32le u32be f32le f32be f64le f64be alaw mulaw g722 g726 g726le image2pipe'.split(
    ' ',
  );

/** All other names of demuxers on the lists. */
const DEMUXER_ALIASES: Readonly<Record<string, string>> = {
  mp4: 'mov',
  m4a: 'mov',
  '3gp': 'mov',
  '3g2': 'mov',
  mj2: 'mov',
  webm: 'matroska',
  'matroska,webm': 'matroska',
  'mov,mp4,m4a,3gp,3g2,mj2': 'mov',
};

const REFUSED_DEMUXERS: Readonly<Record<string, string>> = {
  hls: 'a playlist opens other files',
  applehttp: 'a playlist opens other files',
  dash: 'a manifest opens other files',
  sdp: 'it opens network sockets',
  rtp: 'it opens network sockets',
  rtsp: 'it opens network sockets',
  data: 'it shows any file as it is',
  tty: 'it draws any text file',
  bin: 'it draws any text file',
  xbin: 'it draws any text file',
};

/** How an input is opened. */
export type InputKind = 'media' | 'raw' | 'concat' | 'lavfi';

/** The kind of input a forced demuxer means, and the demuxer's own name. */
export function inputKind(
  format: string | undefined,
): { ok: true; kind: InputKind; demuxer: string | undefined } | { ok: false; problem: Problem } {
  if (format === undefined) return { ok: true, kind: 'media', demuxer: undefined };
  if (format === 'concat') return { ok: true, kind: 'concat', demuxer: 'concat' };
  if (format === 'lavfi') return { ok: true, kind: 'lavfi', demuxer: 'lavfi' };
  const problem = demuxerProblem(format);
  if (problem !== undefined) return { ok: false, problem };
  const demuxer = Object.hasOwn(DEMUXER_ALIASES, format) ? DEMUXER_ALIASES[format] : format;
  return { ok: true, kind: RAW_DEMUXERS.includes(format) ? 'raw' : 'media', demuxer };
}

/** Why a demuxer may not be named, or undefined. */
export function demuxerProblem(format: string): Problem | undefined {
  if (MEDIA_DEMUXERS.includes(format) || RAW_DEMUXERS.includes(format) || Object.hasOwn(DEMUXER_ALIASES, format))
    return undefined;
  const reason = Object.hasOwn(REFUSED_DEMUXERS, format) ? `: ${REFUSED_DEMUXERS[format]}` : '';
  return {
    rule: 'demuxer.unknown',
    message: `the input format "${format}" is not on the list of allowed formats${reason}`,
  };
}

/** The -format_whitelist for an input of this kind. */
export function formatWhitelist(kind: InputKind, demuxer: string | undefined): string {
  switch (kind) {
    case 'media':
      return demuxer ?? MEDIA_DEMUXERS.join(',');
    case 'raw':
      return demuxer ?? '';
    case 'concat':
      return ['concat', ...MEDIA_DEMUXERS].join(',');
    case 'lavfi':
      return 'lavfi';
  }
}

/** How an output's name is used: one file, or a template from which names are made. */
export type OutputKind = 'file' | 'null' | 'image' | 'segment' | 'hls' | 'dash';

/** Muxers that write exactly the file they are given. */
const FILE_MUXERS = new Set(
  (
    'mp4 mov ipod 3gp 3g2 psp f4v ismv matroska webm mpegts mp2 mp3 wav w64 adts flac ogg oga ogv spx opus gif webp apng avif avi flv asf asf_stream mpeg mpeg1video mpeg2video ' +
    'vob dvd svcd vcd m4v mxf mxf_d10 mxf_opatom gxf nut rm au aiff caf ac3 eac3 dts truehd mlp amr tta wv voc h261 h263 h264 hevc vvc ivf obu vc1 mjpeg mpjpeg dv dnxhd dirac yuv4mpegpipe ' +
    'rawvideo s8 u8 s16le s16be s24le s24be s32le s32be u16le u16be u24le u24be u32le u32be f32le f32be f64le f64be alaw mulaw g722 g726 ' +
    'ffmetadata srt ass webvtt ttml lrc scc microdvd jacosub sup framemd5 framecrc framehash md5 hash streamhash crc latm spdif image2pipe ico chromaprint bit wtv aptx sbc gsm'
  ).split(' '),
);

const SPECIAL_MUXERS: Readonly<Record<string, OutputKind>> = {
  null: 'null',
  image2: 'image',
  segment: 'segment',
  stream_segment: 'segment',
  ssegment: 'segment',
  hls: 'hls',
  dash: 'dash',
};

/** Extensions whose muxer ffmpeg chooses without looking at MUXER_EXTENSIONS first, or that several muxers share: the one it takes. */
const EXTENSION_MUXER: Readonly<Record<string, string>> = {
  mp4: 'mp4',
  m4a: 'ipod',
  m4v: 'ipod',
  m4b: 'ipod',
  mpg: 'mpeg',
  mpeg: 'mpeg',
  vob: 'vob',
  mp2: 'mp2',
  webp: 'webp',
  avif: 'avif',
  aac: 'adts',
  oga: 'oga',
  ogv: 'ogv',
  mka: 'matroska',
  mks: 'matroska',
  mk3d: 'matroska',
  jpg: 'image2',
  jpeg: 'image2',
  png: 'image2',
  yuv: 'rawvideo',
  rgb: 'rawvideo',
  mxf: 'mxf',
  wmv: 'asf',
  wma: 'asf',
  jfif: 'image2',
};

/** The muxer an output gets and how its name is used, or why there is none. */
export type OutputChoice = { ok: true; kind: OutputKind; muxer: string } | { ok: false; problem: Problem };

/** What an output is, from -f or from its extension. */
export function outputKind(format: string | undefined, extension: string): OutputChoice {
  const muxer = format ?? muxerOf(extension);
  if (muxer === undefined) {
    return {
      ok: false,
      problem: {
        rule: 'muxer.extension',
        message: `the extension "${extension}" names no output format on the list; add -f, or use .mp4, .mkv, .wav, .png …`,
      },
    };
  }
  if (Object.hasOwn(SPECIAL_MUXERS, muxer)) return { ok: true, kind: SPECIAL_MUXERS[muxer] ?? 'file', muxer };
  if (FILE_MUXERS.has(muxer)) return { ok: true, kind: 'file', muxer };
  return {
    ok: false,
    problem: { rule: 'muxer.unknown', message: `the output format "${muxer}" is not on the list of allowed formats` },
  };
}

function muxerOf(extension: string): string | undefined {
  if (Object.hasOwn(EXTENSION_MUXER, extension)) return EXTENSION_MUXER[extension];
  const candidates = Object.entries(MUXER_EXTENSIONS)
    .filter(([, list]) => list.split(' ').includes(extension))
    .map(([name]) => name);
  const allowed = candidates.every((name) => FILE_MUXERS.has(name) || Object.hasOwn(SPECIAL_MUXERS, name));
  return candidates.length > 0 && allowed ? candidates[0] : undefined;
}
