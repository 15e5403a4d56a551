/**
 * What every command line option of ffmpeg and ffprobe may be given. An option that is on no list here, and is no reviewed coder or
 * format option either (av-options.ts), is refused. How many words an option takes is checked against real builds by a test
 * (tables/cli.ts); options whose arity differs between versions are never on a list.
 */
import type { ValueType } from './value-types.js';

/** Special values: checked by their own code, not by a pattern. */
export type SpecialValue = 'format' | 'codec' | 'graph' | 'graph-script' | 'bsf' | 'passlog';

/** What an option is. `specifier`: it may carry `:v:0` and the like; `global`: it belongs to no file, so it may stand anywhere. */
export type OptionRule =
  | { arity: 0; global: boolean; specifier: boolean }
  | { arity: 1; value: ValueType | SpecialValue; global: boolean; specifier: boolean };

type Words = Readonly<Record<string, string>>;

/** Options without a value. */
const FLAGS: Words = {
  global:
    'y n hide_banner stats copyts start_at_zero benchmark ignore_unknown copy_unknown xerror qphist psnr auto_conversion_filters recast_media',
  file: 'an vn sn dn shortest accurate_seek bitexact re find_stream_info',
  specified: 'copyinkf force_fps fix_sub_duration fix_sub_duration_heartbeat display_hflip display_vflip',
};

/** The negations that may be used (`-noNAME`). */
const NEGATIONS: Words = {
  global: 'nostdin nostats nocopyts nostart_at_zero noauto_conversion_filters nobenchmark',
  file: 'noaccurate_seek noshortest nofind_stream_info',
  specified: 'noautorotate noautoscale nofix_sub_duration',
};

const GLOBAL_VALUES: Partial<Record<ValueType | SpecialValue, string>> = {
  graph: 'filter_complex lavfi',
  'graph-script': 'filter_complex_script /filter_complex /lavfi',
  loglevel: 'v loglevel',
  number:
    'filter_threads filter_complex_threads stats_period timelimit dts_delta_threshold dts_error_threshold frame_drop_threshold adrift_threshold copytb max_error_rate cpucount max_alloc async filter_buffered_frames',
  name: 'vsync',
  flags: 'abort_on cpuflags',
  stdout: 'progress',
};

const FILE_VALUES: Partial<Record<ValueType | SpecialValue, string>> = {
  format: 'f',
  time: 't to ss sseof itsoffset muxdelay muxpreload shortest_buf_duration readrate_initial_burst',
  number: 'fs stream_loop thread_queue_size readrate readrate_catchup itsscale isync',
  zeroOne: 'seek_timestamp',
  map: 'map',
  'map-file': 'map_chapters',
  streams: 'program stream_group',
  date: 'timestamp',
  token: 'streamid timecode',
};

const SPECIFIED_VALUES: Partial<Record<ValueType | SpecialValue, string>> = {
  codec: 'c codec acodec vcodec scodec dcodec',
  graph: 'vf af filter',
  'graph-script': 'filter_script /filter /vf /af',
  bsf: 'bsf absf vbsf',
  passlog: 'passlogfile',
  pass: 'pass',
  number:
    'vol ar ac b ab q qscale aq frames vframes aframes dframes max_muxing_queue_size muxing_queue_data_threshold bits_per_raw_sample guess_layout_max display_rotation top copypriorss reinit_filter drop_changed apply_cropping',
  rate: 'r fpsmax',
  size: 's canvas_size',
  ratio: 'aspect enc_time_base time_base',
  pixels: 'pix_fmt',
  name: 'sample_fmt profile fps_mode hwaccel_output_format',
  metadata: 'metadata',
  'map-file': 'map_metadata',
  disposition: 'disposition',
  keyframes: 'force_key_frames',
  layout: 'channel_layout ch_layout',
  matrix: 'intra_matrix inter_matrix chroma_intra_matrix',
  tag: 'tag vtag atag stag',
  token: 'rc_override map_channel',
  text: 'apad',
  flags: 'discard',
  hwaccel: 'hwaccel',
  index: 'hwaccel_device',
};

const PROBE_FLAGS =
  'hide_banner pretty unit prefix byte_binary_prefix sexagesimal show_format show_streams show_packets show_frames show_chapters show_programs show_stream_groups show_error show_data show_private_data private noprivate ' +
  'count_frames count_packets bitexact find_stream_info nofind_stream_info show_program_version show_library_versions show_versions show_pixel_formats noshow_private_data analyze_frames';

const PROBE_VALUES: Partial<Record<ValueType | SpecialValue, string>> = {
  loglevel: 'v loglevel',
  format: 'f',
  text: 'print_format of output_format show_entries print_filename',
  streams: 'select_streams',
  token: 'read_intervals show_data_hash show_log show_optional_fields data_dump_format',
  number: 'cpucount max_alloc',
  flags: 'cpuflags',
};

/** Options that are known and refused, with what to do instead. Other options are refused as unknown. */
export const REFUSED_OPTIONS: Readonly<Record<string, string>> = {
  report: 'it writes a log file; the end of standard error is part of the result',
  attach: 'it reads any file into the output',
  dump_attachment: 'it writes files whose names the media may choose',
  vstats: 'it writes a file of its own naming',
  vstats_file: 'it writes a file of its own; use the statistics on standard error',
  sdp_file: 'it writes a file for a network stream',
  fpre: 'a preset file may set any option',
  vpre: 'a preset file may set any option',
  apre: 'a preset file may set any option',
  spre: 'a preset file may set any option',
  pre: 'a preset file may set any option',
  stats_enc_pre: 'it writes a file',
  stats_enc_post: 'it writes a file',
  stats_mux_pre: 'it writes a file',
  print_graphs: 'it is a debugging aid that can write files',
  print_graphs_file: 'it writes a file',
  init_hw_device: 'it opens devices; use -hwaccel',
  filter_hw_device: 'it opens devices; use -hwaccel',
  vaapi_device: 'it opens devices; use -hwaccel',
  qsv_device: 'it opens devices; use -hwaccel',
  target: 'it sets other options unseen; write them out',
  dec: 'loopback decoders are not supported',
  stdin: 'the program never reads standard input',
  dump: 'it prints every packet',
  hex: 'it prints every packet',
  autorotate: 'it takes a value in some versions and none in others; use -noautorotate',
  autoscale: 'it takes a value in some versions and none in others; use -noautoscale',
  protocol_whitelist: 'the worker sets it before every input',
  protocol_blacklist: 'the worker decides about protocols',
  format_whitelist: 'the worker sets it before every input',
  codec_whitelist: 'the worker decides about formats and coders',
  o: 'standard output is the result of ffprobe',
};

function tableFrom(
  groups: readonly { values: Partial<Record<ValueType | SpecialValue, string>>; global: boolean; specifier: boolean }[],
  flags: readonly { names: string; global: boolean; specifier: boolean }[],
): ReadonlyMap<string, OptionRule> {
  const table = new Map<string, OptionRule>();
  for (const { names, global, specifier } of flags)
    for (const name of names.split(' ')) table.set(name, { arity: 0, global, specifier });
  for (const { values, global, specifier } of groups) {
    for (const [value, names] of Object.entries(values)) {
      for (const name of names.split(' '))
        table.set(name, { arity: 1, value: value as ValueType | SpecialValue, global, specifier });
    }
  }
  return table;
}

/** ffmpeg's options. */
export const FFMPEG_OPTIONS: ReadonlyMap<string, OptionRule> = tableFrom(
  [
    { values: GLOBAL_VALUES, global: true, specifier: false },
    { values: FILE_VALUES, global: false, specifier: false },
    { values: SPECIFIED_VALUES, global: false, specifier: true },
  ],
  [FLAGS, NEGATIONS].flatMap((words) => [
    { names: words['global'] ?? '', global: true, specifier: false },
    { names: words['file'] ?? '', global: false, specifier: false },
    { names: words['specified'] ?? '', global: false, specifier: true },
  ]),
);

/** ffprobe's options; all of them belong to the one input. */
export const FFPROBE_OPTIONS: ReadonlyMap<string, OptionRule> = tableFrom(
  [
    { values: PROBE_VALUES, global: true, specifier: false },
    { values: { codec: 'c codec' }, global: true, specifier: true },
  ],
  [{ names: PROBE_FLAGS, global: true, specifier: false }],
);
