/**
 * Judges an output and every other name its muxer makes files from: numbered pictures, segments, lists, init segments, master
 * playlists, variants, two-pass logs. Names that are derived from a template are accounted with a pattern, so that an input they
 * would overwrite is found.
 */
import type { NamedValue } from './av-options.js';
import type { GivenFile } from './command-line.js';
import { type OutputChoice, outputKind } from './format-policy.js';
import { literalPattern, outputPattern, templateSource } from './name-patterns.js';
import type { OptionContext } from './option-check.js';
import { extensionOf, foldedPath, normalPath, parentOf, pathProblem } from './path-rules.js';
import type { Problem } from './verdict.js';

/** A problem, with the word it is about. */
export type OutputProblem = Problem & { index: number; argument: string };

/** A muxer option that carries a name, and where its value stands in argv. */
export type NamedAt = { value: NamedValue; index: number };

/** Where ffmpeg puts two-pass logs when -passlogfile does not say. */
const DEFAULT_PASS_LOG = 'ffmpeg2pass';

/** Values of -flags that may ask for a pass: a number or "all" may hold any flag. */
const FIRST_OR_SECOND_PASS = /pass[12]|\d|all|max/;

/** Judges an output; undefined when all its names are fine. */
export function outputProblem(
  file: GivenFile,
  choice: OutputChoice,
  named: readonly NamedAt[],
  context: OptionContext,
): OutputProblem | undefined {
  const own = nameProblem(file, choice, named, context) ?? passProblem(file, context) ?? temporaryProblem(file);
  if (own !== undefined) return { ...own, index: file.index, argument: file.name };
  for (const { value, index } of named) {
    const problem = namedProblem(value, file.name, context);
    if (problem !== undefined)
      return { rule: problem.rule, message: `-${value.option}: ${problem.message}`, index, argument: value.value };
  }
  return undefined;
}

function nameProblem(
  file: GivenFile,
  choice: OutputChoice,
  named: readonly NamedAt[],
  context: OptionContext,
): Problem | undefined {
  const { name } = file;
  if (name === '-') {
    if (choice.ok && choice.kind === 'null') return undefined;
    return {
      rule: 'output.stdout',
      message: '"-" is allowed only with -f null; write the output to a file of the session',
    };
  }
  const problem = pathProblem(name);
  if (problem !== undefined) return problem;
  if (!choice.ok) return undefined;
  switch (choice.kind) {
    case 'null':
      return undefined;
    case 'file':
      return context.paths.output(name) ?? numberedProblem(name, context);
    case 'image':
      if (hasOption(file, 'atomic_writing', /./)) context.paths.withTemporaries();
      return templateProblem(name, '', context);
    case 'segment':
      context.paths.withTemporaries();
      return segmentFormatProblem(name, named) ?? templateProblem(name, '', context);
    case 'hls':
      context.paths.withTemporaries();
      madeByHls(file, named, context);
      return (
        templateProblem(name, 'v', context) ?? hlsSegmentsProblem(file, named, context) ?? context.paths.beside(name)
      );
    case 'dash':
      context.paths.withTemporaries();
      madeByDash(file, context);
      return context.paths.output(name) ?? dashSegmentsProblem(file, context) ?? context.paths.beside(name);
  }
}

/** A picture's name with a number in it makes ffmpeg number the pictures, also where its extension alone would mean one file (`o%d.webp`). */
function numberedProblem(name: string, context: OptionContext): Problem | undefined {
  const template = outputPattern(name, '');
  if (!template.ok || template.pattern === undefined || !context.paths.looksLikeSequence(name)) return undefined;
  return context.paths.output(name, template.pattern, true);
}

/** The segment muxer chooses the format of its segments by extension, and a playlist muxer inside it would open files of its own. */
function segmentFormatProblem(name: string, named: readonly NamedAt[]): Problem | undefined {
  if (named.some((one) => one.value.option === 'segment_format')) return undefined;
  const inner = outputKind(undefined, extensionOf(name));
  if (inner.ok && (inner.kind === 'file' || inner.kind === 'image')) return undefined;
  return inner.ok
    ? { rule: 'muxer.unknown', message: `segments may not be of format "${inner.muxer}"` }
    : inner.problem;
}

/** Whatever argv says about segments: `STEM0.vtt` and `STEM_vtt.m3u8` for subtitles, `init.mp4` (with variants `init_0.mp4`) for fragments. */
function madeByHls(file: GivenFile, named: readonly NamedAt[], context: OptionContext): void {
  const stem = templateSource(foldedPath(file.name).replace(/\.[^./]*$/, ''));
  const folder = templateSource(folderOf(foldedPath(file.name)));
  context.paths.made(new RegExp(`^${stem}(-?\\d+\\.vtt|_vtt\\.m3u8)$`));
  if (!hasOption(file, 'hls_segment_type', /fmp4|1/)) return;
  const given = named.findLast((one) => one.value.option === 'hls_fmp4_init_filename')?.value.value ?? 'init.mp4';
  const init = foldedPath(given);
  const dot = init.lastIndexOf('.') > init.lastIndexOf('/') ? init.lastIndexOf('.') : init.length;
  const [own, extension] = [init.slice(0, dot), init.slice(dot)].map(templateSource);
  context.paths.made(new RegExp(`^${folder}${own}(_\\d+)?${extension}$`));
}

/** Playlists for players of the other kind, when asked for: `master.m3u8` and `media_0.m3u8`. */
function madeByDash(file: GivenFile, context: OptionContext): void {
  const folder = literalPattern(folderOf(foldedPath(file.name)));
  context.paths.made(new RegExp(`^${folder}(master|media_\\d+)\\.m3u8$`));
}

/** The folder of a folded path, with its slash; `''` at the top. */
function folderOf(path: string): string {
  const folder = parentOf(path);
  return folder === '' ? '' : `${folder}/`;
}

/** Names the muxer makes without being told: `STEM0.ts`, in one file `STEM.ts`, `STEM0.vtt` for subtitles. */
function hlsSegmentsProblem(file: GivenFile, named: readonly NamedAt[], context: OptionContext): Problem | undefined {
  if (named.some((one) => one.value.option === 'hls_segment_filename')) return undefined;
  const stem = normalPath(file.name).replace(/\.[^./]*$/, '');
  const digits = hasOption(file, 'hls_flags', /single_file/) ? '*' : '+';
  const pattern = new RegExp(`^${templateSource(foldedPath(stem))}-?\\d${digits}\\.(ts|m4s|mp4|vtt|aac)$`);
  return context.paths.output(`${stem}%d.ts`, pattern);
}

function hasOption(file: GivenFile, name: string, value: RegExp): boolean {
  return file.options.some((option) => option.name === name && value.test(option.value ?? ''));
}

/** Names the muxer makes without being told: `init-stream0.m4s`, `chunk-stream0-00001.m4s`, in one file `STEM-stream0.mp4`. */
function dashSegmentsProblem(file: GivenFile, context: OptionContext): Problem | undefined {
  const path = normalPath(file.name);
  const folder = parentOf(path);
  const stem = `${path.replace(/\.[^./]*$/, '')}-stream`;
  const beside = (own: string): string => (folder === '' ? own : `${folder}/${own}`);
  return (
    context.paths.output(`${stem}%d.mp4`, derivedFrom(stem)) ??
    context.paths.output(beside('init-stream%d.m4s'), derivedFrom(beside('init-stream'))) ??
    context.paths.output(beside('chunk-stream%d.m4s'), derivedFrom(beside('chunk-stream')))
  );
}

function derivedFrom(stem: string): RegExp {
  return new RegExp(`^${literalPattern(foldedPath(stem))}-?\\d+(-\\d+)?\\.[a-z0-9]+$`);
}

function templateProblem(name: string, letters: string, context: OptionContext): Problem | undefined {
  const template = outputPattern(name, letters);
  return template.ok ? context.paths.output(name, template.pattern) : template.problem;
}

function namedProblem(named: NamedValue, output: string, context: OptionContext): Problem | undefined {
  const { value, use, option } = named;
  switch (use) {
    case 'output':
      return templateProblem(
        value,
        option === 'segment_list' || option === 'segment_header_filename' ? '' : 'v',
        context,
      );
    case 'derived-name':
      return derivedNameProblem(value, output, context);
    case 'prefix':
      if (value === '') return undefined;
      return pathProblem(value.endsWith('/') ? value : `${value}x`) ?? prefixProblem(value);
    case 'variant-map':
      return /^[a-z]+:[\w-]+([, ]+[a-z]+:[\w-]+)*$/i.test(value.trim())
        ? undefined
        : {
            rule: 'value.variants',
            message: 'expected groups such as "v:0,a:0,name:low v:1,a:1"; names may hold letters, digits, "-" and "_"',
          };
    case 'segment-format': {
      const choice = outputKind(value, '');
      if (!choice.ok) return choice.problem;
      return choice.kind === 'file' || choice.kind === 'image'
        ? undefined
        : { rule: 'muxer.unknown', message: `segments may not be of format "${value}"` };
    }
  }
}

/** A name the muxer puts beside its playlist; `$Number$` and `%v` are filled in by the muxer. */
function derivedNameProblem(value: string, output: string, context: OptionContext): Problem | undefined {
  const problem = pathProblem(value.replace(/^\$/, 'x'));
  if (problem !== undefined) return problem;
  const folder = parentOf(normalPath(output));
  const template = /[$%]/.test(value) || folder.includes('%');
  if (template && !/^[\w$%./ -]+$/.test(value)) {
    return {
      rule: 'pattern.output',
      message: 'only letters, digits, ".", "-", "_" and fields such as $Number$ are allowed in this name',
    };
  }
  const beside = (name: string): string => `${folder === '' ? '' : `${folder}/`}${name}`;
  const pattern = template ? new RegExp(`^${templateSource(foldedPath(beside(value)))}$`) : undefined;
  return context.paths.output(beside(value.replace(/^\$/, 'x')), pattern);
}

function prefixProblem(value: string): Problem | undefined {
  return /[%\r\n]/.test(value) ? { rule: 'pattern.output', message: '"%" is not allowed in a prefix' } : undefined;
}

/** Two-pass encoding writes PREFIX-0.log (and .mbtree) beside the session's files: no link may wait there. */
function passProblem(file: GivenFile, context: OptionContext): Problem | undefined {
  for (const prefix of passLogs(file)) {
    const problem = passLogProblem(prefix, context);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** The second pass of Xvid writes what the first had learnt to a file in /tmp. */
function temporaryProblem(file: GivenFile): Problem | undefined {
  const coder = /^(c|codec|vcodec)$/;
  if (!file.options.some(({ name, value }) => coder.test(name) && value === 'libxvid')) return undefined;
  if (!hasOption(file, 'pass', /[23]/) && !hasOption(file, 'flags', FIRST_OR_SECOND_PASS)) return undefined;
  return {
    rule: 'option.refused',
    message: 'libxvid writes a file outside the session in its second pass; encode in one pass, or with mpeg4',
  };
}

/** Prefixes of the logs that ffmpeg and the encoders choose themselves. */
function passLogs(file: GivenFile): string[] {
  const flagged = hasOption(file, 'flags', FIRST_OR_SECOND_PASS);
  const inParams = (option: string): boolean => hasOption(file, option, /(^|:)\s*pass\s*=/i);
  const own = hasOption(file, 'pass', /./) && !file.options.some((option) => option.name === 'passlogfile');
  return [
    ...(own || flagged ? [DEFAULT_PASS_LOG] : []),
    ...(flagged || inParams('x264-params') || inParams('x264opts') ? ['x264_2pass'] : []),
    ...(flagged || inParams('x265-params') ? ['x265_2pass'] : []),
  ];
}

/** The prefix of two-pass logs: an output rule on every name made from it. */
export function passLogProblem(prefix: string, context: OptionContext): Problem | undefined {
  const problem = pathProblem(prefix);
  if (problem !== undefined) return problem;
  const literal = literalPattern(foldedPath(prefix));
  return context.paths.output(prefix, new RegExp(`^${literal}(-\\d+)?\\.log(\\.mbtree|\\.cutree)?(\\.temp)?$`), true);
}
