/**
 * Judges the value of one option and gives back the words to run for it. Filtergraphs from script files are put on the command line
 * itself, so that what was checked is what runs, and so that it works on versions that have dropped the script options.
 */
import { checkAvOption } from './av-options.js';
import { bsfProblem } from './bsf-check.js';
import type { GivenOption } from './command-line.js';
import { decodeUtf8 } from './concat-list.js';
import { checkGraph } from './filter-check.js';
import { MAX_GRAPH_CHARACTERS } from './filtergraph.js';
import { demuxerProblem, outputKind } from './format-policy.js';
import type { ModelOption } from './model.js';
import type { SpecialValue } from './option-policy.js';
import { passLogProblem } from './output-check.js';
import type { SessionPaths } from './session-paths.js';
import { DECODERS, ENCODERS } from './tables/names.js';
import { VALUE_TYPES, type ValueType, valueProblem } from './value-types.js';
import { type Denial, denial, type Problem } from './verdict.js';

/** What the parts of one check share. `stdout` becomes true when a filter prints there. */
export type OptionContext = {
  tool: 'ffmpeg' | 'ffprobe';
  paths: SessionPaths;
  columns: readonly number[];
  stdout: boolean;
};

/** Where an option stands. */
export type OptionPlace = 'global' | 'input' | 'output';

/** Coders that none of the builds in the tables contains: hardware of other platforms, and other builds' libraries. */
const MORE_CODERS = new Set(
  (
    'h264_videotoolbox hevc_videotoolbox prores_videotoolbox aac_at alac_at mp3_at h264_amf hevc_amf av1_amf h264_mf hevc_mf av1_mf aac_mf mp3_mf h264_nvenc hevc_nvenc av1_nvenc libfdk_aac libopenh264 libkvazaar libvvenc liboapv ' +
    'libx262 libxavs2 libilbc libjxl libjxl_anim librav1e libsvtav1 libaom-av1 libvpx libvpx-vp9 libdav1d h264_cuvid hevc_cuvid av1_cuvid vp9_cuvid vp8_cuvid mjpeg_cuvid mpeg4_cuvid vc1_cuvid mpeg2_cuvid'
  ).split(' '),
);
const KNOWN_ENCODERS = new Set(ENCODERS);
const KNOWN_DECODERS = new Set(DECODERS);
/** Names of codecs (not of one coder), which ffmpeg also takes for -c. */
const CODEC_NAMES = new Set(
  'h264 hevc h265 vp8 vp9 av1 mpeg4 mpeg2video theora aac mp3 opus vorbis flac ac3 eac3 alac dts webvtt subrip ass mov_text png mjpeg gif webp prores dnxhd ffv1 rawvideo text jpeg2000 tiff bmp dvd_subtitle hdmv_pgs_subtitle dvb_subtitle eia_608'.split(
    ' ',
  ),
);
const REFUSED_CODERS = /_(omx|v4l2m2m)$|^(libgme|vapoursynth|librsvg)$/;

/** Judges one option; a denial, or the words that stand for it. */
export function checkOption(option: GivenOption, place: OptionPlace, context: OptionContext): ModelOption | Denial {
  const { name, value, index, rule } = option;
  const word = `-${name}${option.specifier === '' ? '' : `:${option.specifier}`}`;
  if (value === undefined) return { name, words: [word] };
  const refused = (problem: Problem): Denial =>
    denial({ rule: problem.rule, message: `${word}: ${problem.message}` }, index + 1, value);
  if (rule === 'av') {
    const verdict = checkAvOption(name, value);
    if (verdict === undefined)
      return refused({ rule: 'option.unknown', message: 'not on the list of allowed options' });
    if (!verdict.ok) return refused(verdict.problem);
    if (verdict.named !== undefined && place !== 'output')
      return refused({ rule: 'option.place', message: 'it belongs to an output' });
    return { name, words: [word, value] };
  }
  if (rule.arity === 0) return { name, words: [word] };
  if (rule.value in VALUE_TYPES) {
    const problem = valueProblem(rule.value as ValueType, value);
    return problem === undefined ? { name, words: [word, value] } : refused(problem);
  }
  return checkSpecial(rule.value as SpecialValue, option, word, value, place, context, refused);
}

function checkSpecial(
  kind: SpecialValue,
  option: GivenOption,
  word: string,
  value: string,
  place: OptionPlace,
  context: OptionContext,
  refused: (problem: Problem) => Denial,
): ModelOption | Denial {
  const { name } = option;
  switch (kind) {
    case 'format': {
      if (place === 'output') {
        const kindOf = outputKind(value, '');
        return kindOf.ok ? { name, words: [word, value] } : refused(kindOf.problem);
      }
      const problem = value === 'concat' || value === 'lavfi' ? undefined : demuxerProblem(value);
      return problem === undefined ? { name, words: [word, value] } : refused(problem);
    }
    case 'codec': {
      const known = place === 'output' ? KNOWN_ENCODERS : KNOWN_DECODERS;
      const good =
        (value === 'copy' && place === 'output') ||
        ((known.has(value) || MORE_CODERS.has(value) || CODEC_NAMES.has(value)) && !REFUSED_CODERS.test(value));
      return good
        ? { name, words: [word, value] }
        : refused({
            rule: 'codec.unknown',
            message: `"${value}" is not on the list of ${place === 'output' ? 'encoders ("copy" copies the stream)' : 'decoders'}`,
          });
    }
    case 'graph': {
      const graph = checkGraph(value, context);
      if (!graph.ok) return refused(graph.problem);
      context.stdout ||= graph.stdout;
      return { name, words: [word, graph.text] };
    }
    case 'graph-script': {
      const content = context.paths.content(value, MAX_GRAPH_CHARACTERS);
      if (!content.ok) return refused(content.problem);
      const text = decodeUtf8(content.bytes);
      if (text.includes('\0') || text.includes('\ufffd'))
        return refused({ rule: 'graph.syntax', message: `"${value}" is not text in UTF-8` });
      const graph = checkGraph(text, context);
      if (!graph.ok) return refused({ rule: graph.problem.rule, message: `in "${value}": ${graph.problem.message}` });
      context.stdout ||= graph.stdout;
      return {
        name,
        words: [
          name === 'filter_complex_script'
            ? '-filter_complex'
            : word.replace(/^-(filter_script|\/)/, (from) => (from === '-/' ? '-' : '-filter')),
          graph.text,
        ],
      };
    }
    case 'bsf': {
      const problem = bsfProblem(value);
      return problem === undefined ? { name, words: [word, value] } : refused(problem);
    }
    case 'passlog': {
      const problem = passLogProblem(value, context);
      return problem === undefined ? { name, words: [word, value] } : refused(problem);
    }
  }
}
