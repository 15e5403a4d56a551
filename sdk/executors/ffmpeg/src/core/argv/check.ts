/**
 * The argv validator: may this argv run in this session, and what exactly would run? A pure function apart from its questions about
 * session files. Order: words, split into files and options, each option's value, each file, then what only the whole can show (an
 * output that is an input). The first problem ends it.
 */
import { checkAvOption } from './av-options.js';
import { type CommandLine, type GivenFile, type GivenOption, splitFfmpeg, splitFfprobe } from './command-line.js';
import { demuxerProblem, formatWhitelist, inputKind, outputKind } from './format-policy.js';
import { inputProblem } from './input-check.js';
import { type CommandModel, type ModelOption, type RebuildOptions, rebuildArgv } from './model.js';
import { checkOption, type OptionContext } from './option-check.js';
import { type NamedAt, outputProblem } from './output-check.js';
import { extensionOf } from './path-rules.js';
import type { SessionFiles } from './session-files.js';
import { SessionPaths } from './session-paths.js';
import { timeUs } from './time.js';
import { type Denial, denial } from './verdict.js';
import { columnsFor } from './version.js';
import { checkWords } from './words.js';

/** The question: one argv for one tool in one session. `version` is what `ffmpeg -version` calls itself. */
export type ArgvQuestion = {
  tool: 'ffmpeg' | 'ffprobe';
  argv: readonly string[];
  files: SessionFiles;
  version: string;
};

/** An accepted argv. Paths are session-relative. */
export type ArgvAllowance = {
  verdict: 'allow';
  model: CommandModel;
  /** The argv to run (without the program), rebuilt from the model. */
  rebuild(options?: RebuildOptions): string[];
  /** Files that are read: inputs, list entries, fonts, LUTs, subtitles, scripts. */
  inputs: string[];
  /** Files that are written; may be templates (`frames/%04d.png`). */
  outputs: string[];
  /** Folders of outputs that do not exist yet; ffmpeg does not create them. */
  missingFolders: string[];
  /** Length of the longest output in microseconds, where -t or -to says so. */
  expectedDurationUs: number | undefined;
  /** argv itself asked for -progress. */
  wantsProgress: boolean;
};

/** The answer. */
export type ArgvVerdict = ArgvAllowance | Denial;

/** Judges an argv (remote specification, "Media session ops and argv validation"; refusals are `argv_not_allowed`). */
export function checkArgv(question: ArgvQuestion): ArgvVerdict {
  const bad = checkWords(question.argv);
  if (bad !== undefined) return bad;
  const split = question.tool === 'ffmpeg' ? splitFfmpeg(question.argv) : splitFfprobe(question.argv);
  if (!split.ok) return split.denial;
  const paths = new SessionPaths(question.files);
  const context: OptionContext = { tool: question.tool, paths, columns: columnsFor(question.version), stdout: false };
  const model = checkLine(question.tool, split.line, context);
  if ('verdict' in model) return model;
  const overlap = paths.overlap();
  if (overlap !== undefined) {
    const index = question.argv.findIndex((word) => word.includes(overlap.path));
    return denial(overlap, index, index < 0 ? overlap.path : (question.argv[index] ?? ''));
  }
  const durations = model.files.flatMap((file) =>
    file.role === 'output' && file.durationUs !== undefined ? [file.durationUs] : [],
  );
  return {
    verdict: 'allow',
    model,
    rebuild: (options) => rebuildArgv(model, options),
    inputs: paths.inputs,
    outputs: paths.outputs,
    missingFolders: paths.missingFolders,
    expectedDurationUs: durations.length === 0 ? undefined : Math.max(...durations),
    wantsProgress: model.global.some((option) => option.name === 'progress'),
  };
}

function checkLine(tool: 'ffmpeg' | 'ffprobe', line: CommandLine, context: OptionContext): CommandModel | Denial {
  const global: ModelOption[] = [];
  for (const option of line.global) {
    const checked = checkOption(option, 'global', context);
    if ('verdict' in checked) return checked;
    global.push(checked);
  }
  if (tool === 'ffmpeg' && line.files.length === 0)
    return denial({ rule: 'argv.no-file', message: 'there is no input and no output' }, -1, '');
  if (tool === 'ffprobe' && line.files.length === 0)
    return denial({ rule: 'argv.no-file', message: 'ffprobe needs an input' }, -1, '');
  const files: CommandModel['files'][number][] = [];
  for (const file of line.files) {
    const checked = file.kind === 'input' ? checkInput(file, context) : checkOutput(file, context);
    if ('verdict' in checked) return checked;
    files.push(checked);
  }
  return { tool, global, files, stdout: context.stdout ? 'used' : 'free' };
}

/** The last value of an option among a file's options, as ffmpeg takes it. */
function last(options: readonly GivenOption[], name: string): GivenOption | undefined {
  return options.findLast((option) => option.name === name);
}

function checkInput(file: GivenFile, context: OptionContext): CommandModel['files'][number] | Denial {
  const format = last(file.options, 'f');
  const kind = inputKind(format?.value);
  if (!kind.ok) return denial(kind.problem, (format?.index ?? -1) + 1, format?.value ?? '');
  for (const option of file.options) {
    if (option.name !== 'f' || option === format) continue;
    const problem =
      option.value === 'lavfi' || option.value === 'concat' ? undefined : demuxerProblem(option.value ?? '');
    if (problem !== undefined) return denial(problem, option.index + 1, option.value ?? '');
  }
  const options: ModelOption[] = [];
  for (const option of file.options) {
    const checked = checkOption(option, 'input', context);
    if ('verdict' in checked) return checked;
    options.push(checked);
  }
  const glob = last(file.options, 'pattern_type')?.value === 'glob';
  const checked = inputProblem(file.name, { kind: kind.kind, demuxer: kind.demuxer, glob }, context);
  if (!checked.ok) return denial(checked.problem, file.index, file.name);
  return {
    role: 'input',
    name: checked.name,
    kind: kind.kind,
    formatWhitelist: formatWhitelist(kind.kind, kind.demuxer),
    options,
  };
}

function checkOutput(file: GivenFile, context: OptionContext): CommandModel['files'][number] | Denial {
  const format = last(file.options, 'f');
  const kind = outputKind(format?.value, extensionOf(file.name));
  if (file.name === '')
    return denial(
      { rule: 'path.empty', message: 'an empty word stands where ffmpeg expects an option or an output name' },
      file.index,
      '',
    );
  const named: NamedAt[] = [];
  const options: ModelOption[] = [];
  for (const option of file.options) {
    const checked = checkOption(option, 'output', context);
    if ('verdict' in checked) return checked;
    options.push(checked);
    if (option.rule !== 'av') continue;
    const av = checkAvOption(option.name, option.value ?? '');
    if (av?.ok === true && av.named !== undefined) named.push({ value: av.named, index: option.index + 1 });
  }
  const problem = outputProblem(file, kind, named, context);
  if (problem !== undefined) return denial(problem, problem.index, problem.argument);
  if (!kind.ok)
    return denial(kind.problem, format === undefined ? file.index : format.index + 1, format?.value ?? file.name);
  const length = last(file.options, 't') ?? last(file.options, 'to');
  return {
    role: 'output',
    name: file.name,
    kind: kind.kind,
    muxer: kind.muxer,
    options,
    durationUs: length?.value === undefined ? undefined : timeUs(length.value),
  };
}
