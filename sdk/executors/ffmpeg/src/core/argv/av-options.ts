/**
 * Options that belong to coders, formats, scaler and resampler ("AVOptions"). They always take one word. An option is allowed when an
 * allowed coder, format or general class has it, it is not refused by name, and its value is harmless by type; an option whose value is
 * text needs an entry in TEXT_OPTIONS.
 */
import { encoderParamsProblem } from './encoder-params.js';
import { OPTION_GROUPS } from './tables/options.js';
import { typedValueProblem, VALUE_TYPES, type ValueType } from './value-types.js';
import type { Problem } from './verdict.js';

/** Owners whose options are not offered: devices, networks, playlists, fan-out muxers and coders that load code. */
const REFUSED_OWNERS: ReadonlySet<string> = new Set(
  (
    'hls hls,applehttp webm_dash_manifest rtp rtsp sdp sap whip lavfi alsa pulse oss jack x11grab fbdev kmsgrab v4l2 video4linux2,v4l2 iec61883 libdc1394 openal sndio caca sdl,sdl2 opengl xv ' +
    'tee fifo rtp_mpegts webm_chunk smoothstreaming hds imf vobsub tty bin xbin adf idf data dvdvideo libcdio libgme libopenmpt h264_omx mpeg4_omx ' +
    'h263_v4l2m2m h264_v4l2m2m hevc_v4l2m2m mpeg4_v4l2m2m vp8_v4l2m2m mpeg1_v4l2m2m mpeg2_v4l2m2m vc1_v4l2m2m vp9_v4l2m2m AVIOContext URLContext AVFilter AVFilterContext'
  ).split(' '),
);

/** Muxers that carry a name also found among the refused demuxers. */
const ALLOWED_MUXERS: ReadonlySet<string> = new Set(['hls', 'dash', 'segment']);

/** Options refused by name, whatever their type, with the reason. */
const REFUSED: Readonly<Record<string, string>> = {
  enable_drefs: 'the file could name other files',
  use_absolute_path: 'the file could name other files',
  ts_from_file: 'it reads facts about files',
  export_path_metadata: 'it puts paths into metadata',
  strftime_mkdir: 'names from the clock are not allowed',
  remove_at_exit: 'it deletes files',
  http_persistent: 'outputs go to the session only',
  method: 'outputs go to the session only',
  http_user_agent: 'outputs go to the session only',
  http_opts: 'outputs go to the session only',
  headers: 'outputs go to the session only',
  timeout: 'outputs go to the session only',
  ignore_io_errors: 'outputs go to the session only',
  utc_timing_url: 'outputs go to the session only',
  hls_key_info_file: 'it names files inside a file; encrypt elsewhere',
  hls_enc: 'it writes a key file',
  hls_enc_key: 'it writes a key file',
  hls_enc_key_url: 'it writes a key file',
  hls_enc_iv: 'it writes a key file',
  hls_vtt_options: 'it sets options of another muxer unseen',
  stats: 'it writes a file',
  'x265-stats': 'it writes a file',
  load_plugins: 'it loads program code',
  load_plugin: 'it loads program code',
  ifo_palette: 'it reads a file',
  dump_separator: 'it is not on the reviewed list',
  allowed_extensions: 'playlists are not read',
  allowed_segment_extensions: 'playlists are not read',
  extension_picky: 'playlists are not read',
  seg_format_options: 'playlists are not read',
  graph: 'a filtergraph is given with -i',
  graph_file: 'a filtergraph is given with -i',
  sub_name: 'it names a file',
  protocol_opts: 'outputs go to the session only',
  format_opts: 'it sets options of another muxer unseen',
  fifo_options: 'it is not supported',
  http_seekable: 'inputs come from the session only',
  listen: 'inputs come from the session only',
  enc_params: 'it is not on the reviewed list',
};

/** How a reviewed text option is judged: by a value type, as encoder parameters, or as a name from which the muxer makes file names. */
type TextUse =
  | ValueType
  | 'params'
  | 'output'
  | 'derived-name'
  | 'prefix'
  | 'nested'
  | 'variant-map'
  | 'segment-format'
  | 'hex';

const TEXT_OPTIONS: Readonly<Record<string, TextUse>> = {
  preset: 'name',
  tune: 'name',
  profile: 'name',
  level: 'name',
  wpredp: 'name',
  'psy-rd': 'token',
  deblock: 'token',
  partitions: 'token',
  x264opts: 'params',
  'x264-params': 'params',
  'x265-params': 'params',
  'aom-params': 'params',
  'svtav1-params': 'params',
  'rav1e-params': 'params',
  'ts-parameters': 'token',
  rc_eq: 'token',
  vendor: 'token',
  gop_timecode: 'token',
  palette: 'token',
  layer_rates: 'token',
  layer: 'token',
  gpu: 'token',
  crop: 'token',
  resize: 'token',
  txt_page: 'token',
  sub_charenc: 'token',
  pixel_format: 'pixels',
  video_size: 'size',
  framerate: 'rate',
  brand: 'tag',
  encryption_scheme: 'name',
  encryption_key: 'hex',
  encryption_kid: 'hex',
  decryption_key: 'hex',
  activation_bytes: 'hex',
  audible_key: 'hex',
  audible_iv: 'hex',
  audible_fixed_key: 'hex',
  cryptokey: 'hex',
  hash: 'name',
  adaptation_sets: 'token',
  override_time_code_rate: 'token',
  creation_time: 'date',
  reference_stream: 'streams',
  segment_time: 'token',
  segment_times: 'token',
  segment_frames: 'token',
  segment_format: 'segment-format',
  segment_format_options: 'nested',
  hls_segment_options: 'nested',
  hls_ts_options: 'nested',
  format_options: 'nested',
  segment_list: 'output',
  segment_header_filename: 'output',
  hls_segment_filename: 'output',
  hls_subtitle_path: 'output',
  hls_fmp4_init_filename: 'derived-name',
  master_pl_name: 'derived-name',
  hls_master_name: 'derived-name',
  single_file_name: 'derived-name',
  init_seg_name: 'derived-name',
  media_seg_name: 'derived-name',
  hls_base_url: 'prefix',
  segment_list_entry_prefix: 'prefix',
  var_stream_map: 'variant-map',
  cc_stream_map: 'token',
};

/** Values that narrow an option whose type alone would allow more. */
const NARROWED: Readonly<Record<string, readonly [RegExp, string]>> = {
  safe: [/^[01]$/, '0 or 1'],
  pattern_type: [/^(sequence|none|glob)$/, 'sequence, none or glob'],
  strftime: [/^(0|false|no|off)$/i, '0 (names from the clock are not allowed)'],
  // By name only: a number or "all" would hold append_list, which follows (and deletes by) a playlist that lies there already.
  hls_flags: [
    /^([-+]?(single_file|delete_segments|round_durations|discont_start|omit_endlist|split_by_time|program_date_time|temp_file|independent_segments|iframes_only|periodic_rekey)(?=[-+]|$))+$/,
    'the names of flags, without append_list and second_level_…',
  ],
  hls_segment_type: [/^(mpegts|fmp4|[01])$/, 'mpegts or fmp4'],
  hls_playlist_type: [/^(event|vod|[012])$/, 'event or vod'],
  segment_list_flags: [/^[\w+-]+$/, 'flags'],
};

/** What a muxer option that carries names needs from the caller, who knows the output. */
export type NamedValue = {
  use: 'output' | 'derived-name' | 'prefix' | 'variant-map' | 'segment-format';
  option: string;
  value: string;
};

/** Result of judging one AVOption. */
export type AvOptionVerdict = { ok: true; named?: NamedValue } | { ok: false; problem: Problem };

let types: ReadonlyMap<string, ReadonlySet<string>> | undefined;

function knownTypes(): ReadonlyMap<string, ReadonlySet<string>> {
  if (types !== undefined) return types;
  const map = new Map<string, Set<string>>();
  for (const group of OPTION_GROUPS) {
    if (group.kind === 'protocol' || group.kind === 'bsf') continue;
    const owners = group.owners.filter(
      (owner) => !REFUSED_OWNERS.has(owner) || (group.kind === 'muxer' && ALLOWED_MUXERS.has(owner)),
    );
    if (owners.length === 0) continue;
    for (const word of group.options.split(' ')) {
      const at = word.lastIndexOf(':');
      const set = map.get(word.slice(0, at)) ?? new Set<string>();
      for (const type of word.slice(at + 1).split('/')) set.add(type);
      map.set(word.slice(0, at), set);
    }
  }
  for (const name of EXTRA.split(' ')) map.set(name, map.get(name) ?? new Set(['int']));
  types = map;
  return map;
}

/**
 * Numeric options of encoders that none of the builds in the tables contains: hardware of other platforms (VideoToolbox, AMF, Media
 * Foundation) and libraries that distributions leave out (fdk-aac, OpenH264, VVenC).
 */
const EXTRA =
  'allow_sw require_sw realtime prio_speed power_efficient frames_before frames_after constant_bit_rate alpha_quality spatial_aq max_slice_bytes max_ref_frames ' +
  'usage quality rc preencode preanalysis enforce_hrd filler_data vbaq frame_skipping skip_frame qp_i qp_p qp_b min_qp_i max_qp_i min_qp_p max_qp_p qvbr_quality_level header_spacing bf_delta_qp bf_ref bf_ref_delta_qp ' +
  'me_half_pel me_quarter_pel max_au_size intra_refresh_mb high_motion_quality_boost_enable gops_per_idr header_insertion_mode profile_tier async_depth latency smart_access_video pa_activity_type pa_lookahead_buffer_depth ' +
  'aac_at_mode aac_at_quality rate_control scenario hw_encoding afterburner eld_sbr eld_v2 signaling latm header_period vbr loopfilter max_nal_size allow_skip_frames cabac rc_mode qpa tier period';

/** Why an AVOption is refused by name, or undefined. */
export function refusedAvOption(name: string): string | undefined {
  return Object.hasOwn(REFUSED, name) ? REFUSED[name] : undefined;
}

/** Judges option `name` (without specifier) with its value; undefined when no allowed class has such an option. */
export function checkAvOption(name: string, value: string): AvOptionVerdict | undefined {
  const reason = refusedAvOption(name);
  if (reason !== undefined)
    return { ok: false, problem: { rule: 'option.refused', message: `-${name} is not allowed: ${reason}` } };
  const known = knownTypes().get(name);
  if (known === undefined) return undefined;
  const narrow = NARROWED[name];
  if (narrow !== undefined && Object.hasOwn(NARROWED, name)) {
    return narrow[0].test(value)
      ? { ok: true }
      : { ok: false, problem: { rule: 'value.type', message: `-${name} takes ${narrow[1]}` } };
  }
  const text = Object.hasOwn(TEXT_OPTIONS, name) ? TEXT_OPTIONS[name] : undefined;
  const hasText = [...known].some((type) => /string|dictionary|binary/.test(type));
  if (text !== undefined && hasText) return checkText(name, text, value);
  if (hasText)
    return {
      ok: false,
      problem: { rule: 'option.unreviewed', message: `the text option -${name} is not on the reviewed list` },
    };
  const problems = [...known].map((type) => typedValueProblem(type, value));
  const first = problems[0];
  return problems.some((problem) => problem === undefined) || first === undefined
    ? { ok: true }
    : { ok: false, problem: { rule: first.rule, message: `-${name}: ${first.message}` } };
}

function checkText(name: string, use: TextUse, value: string): AvOptionVerdict {
  if (isValueType(use)) {
    const [pattern, words] = VALUE_TYPES[use];
    if (pattern.test(value) && !/^\/|\.\.\/|:\/\//.test(value)) return { ok: true };
    return { ok: false, problem: { rule: 'value.type', message: `-${name} takes ${words}` } };
  }
  switch (use) {
    case 'params': {
      const problem = encoderParamsProblem(name, value);
      return problem === undefined ? { ok: true } : { ok: false, problem };
    }
    case 'hex':
      return /^(0x)?[0-9a-fA-F]*$/.test(value)
        ? { ok: true }
        : { ok: false, problem: { rule: 'value.type', message: `-${name} takes hexadecimal digits` } };
    case 'nested':
      return checkNested(name, value);
    case 'output':
    case 'derived-name':
    case 'prefix':
    case 'variant-map':
    case 'segment-format':
      return { ok: true, named: { use, option: name, value } };
  }
}

function isValueType(use: TextUse): use is ValueType {
  return Object.hasOwn(VALUE_TYPES, use);
}

/** `key=value:key=value` of another muxer: every key is an AVOption itself; names of files may not hide there. */
function checkNested(name: string, value: string): AvOptionVerdict {
  if (/['"\\\n]/.test(value))
    return {
      ok: false,
      problem: { rule: 'params.syntax', message: `quotes, backslashes and line breaks are not allowed in -${name}` },
    };
  for (const piece of value.split(':')) {
    if (piece === '') continue;
    const equals = piece.indexOf('=');
    const key = piece.slice(0, Math.max(equals, 0)).trim();
    const inner = equals < 1 ? undefined : checkAvOption(key, piece.slice(equals + 1));
    if (inner === undefined)
      return {
        ok: false,
        problem: { rule: 'params.key', message: `"${key || piece}" is not on the list of options for -${name}` },
      };
    if (!inner.ok) return inner;
    if (inner.named !== undefined)
      return {
        ok: false,
        problem: { rule: 'params.key', message: `"${key}" names a file and may not stand inside -${name}` },
      };
  }
  return { ok: true };
}
