/**
 * Splits argv into files and their options exactly as ffmpeg (`split_commandline`) and ffprobe (`parse_options`) do. What decides is
 * how many words an option takes: a word in option position that does not begin with "-" is an OUTPUT FILE. The splitter knows the
 * options of option-policy.ts and av-options.ts; it stops at the first word it does not know, because guessing its arity would guess
 * which of the following words are files.
 */
import { checkAvOption, refusedAvOption } from './av-options.js';
import { FFMPEG_OPTIONS, FFPROBE_OPTIONS, type OptionRule, REFUSED_OPTIONS } from './option-policy.js';
import { isSpecifier } from './value-types.js';
import { type Denial, denial } from './verdict.js';

/** An option as it stands in argv. `name` is without specifier; `index` is the position of the option, `index + 1` that of its value. */
export type GivenOption = {
  name: string;
  specifier: string;
  value: string | undefined;
  index: number;
  rule: OptionRule | 'av';
};

/** An input or output with the options that belong to it, in order. */
export type GivenFile = { kind: 'input' | 'output'; name: string; index: number; options: GivenOption[] };

/** argv, split. */
export type CommandLine = { global: GivenOption[]; files: GivenFile[] };

/** The line, or the word that could not be placed. */
export type SplitResult = { ok: true; line: CommandLine } | { ok: false; denial: Denial };

const refuse = (rule: string, message: string, index: number, argument: string): SplitResult => ({
  ok: false,
  denial: denial({ rule, message }, index, argument),
});

const EXIT_OPTIONS = new Set(
  '-help ? L h help version buildconf formats muxers demuxers devices codecs decoders encoders bsfs protocols filters pix_fmts layouts sample_fmts dispositions colors hwaccels sources sinks license sections'.split(
    ' ',
  ),
);

/** Splits ffmpeg's argv. */
export function splitFfmpeg(argv: readonly string[]): SplitResult {
  const line: CommandLine = { global: [], files: [] };
  let pending: GivenOption[] = [];
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? '';
    if (word === '--')
      return refuse(
        'argv.double-dash',
        '"--" is not allowed; an output that begins with "-" can be written "./-name"',
        index,
        word,
      );
    if (!word.startsWith('-') || word === '-') {
      line.files.push({ kind: 'output', name: word, index, options: pending });
      pending = [];
      continue;
    }
    if (word === '-i') {
      const name = argv[index + 1];
      if (name === undefined)
        return refuse('argv.value-missing', '-i is the last word; the input is missing', index, word);
      line.files.push({ kind: 'input', name, index: index + 1, options: pending });
      pending = [];
      index++;
      continue;
    }
    const option = readOption(argv, index, FFMPEG_OPTIONS);
    if ('verdict' in option) return { ok: false, denial: option };
    if (option.rule !== 'av' && option.rule.global) line.global.push(option);
    else pending.push(option);
    if (option.value !== undefined) index++;
  }
  const trailing = pending[0];
  if (trailing !== undefined)
    return refuse(
      'option.trailing',
      `-${trailing.name} stands behind the last output, where ffmpeg ignores it; put it before the file it belongs to`,
      trailing.index,
      argv[trailing.index] ?? '',
    );
  return { ok: true, line };
}

/** Splits ffprobe's argv: options are global and order-free, and there is exactly one input. */
export function splitFfprobe(argv: readonly string[]): SplitResult {
  const line: CommandLine = { global: [], files: [] };
  const options: GivenOption[] = [];
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index] ?? '';
    if (word === '--') return refuse('argv.double-dash', '"--" is not allowed', index, word);
    const positional = !word.startsWith('-') || word === '-';
    if (positional || word === '-i') {
      const name = positional ? word : argv[index + 1];
      if (name === undefined)
        return refuse('argv.value-missing', '-i is the last word; the input is missing', index, word);
      if (line.files.length > 0)
        return refuse('probe.inputs', 'ffprobe takes exactly one input', positional ? index : index + 1, name);
      if (!positional) index++;
      line.files.push({ kind: 'input', name, index, options });
      continue;
    }
    const option = readOption(argv, index, FFPROBE_OPTIONS);
    if ('verdict' in option) return { ok: false, denial: option };
    options.push(option);
    if (option.value !== undefined) index++;
  }
  return { ok: true, line };
}

function readOption(
  argv: readonly string[],
  index: number,
  table: ReadonlyMap<string, OptionRule>,
): GivenOption | Denial {
  const word = argv[index] ?? '';
  const colon = word.indexOf(':');
  const name = colon < 0 ? word.slice(1) : word.slice(1, colon);
  const specifier = colon < 0 ? '' : word.slice(colon + 1);
  if (name.startsWith('/') && !table.has(name))
    return denial(
      {
        rule: 'option.from-file',
        message: '"-/option" reads the value from a file; only filtergraphs may be given so',
      },
      index,
      word,
    );
  const reason = Object.hasOwn(REFUSED_OPTIONS, name) ? REFUSED_OPTIONS[name] : undefined;
  if (reason !== undefined)
    return denial({ rule: 'option.refused', message: `-${name} is not allowed: ${reason}` }, index, word);
  if (EXIT_OPTIONS.has(name))
    return denial(
      { rule: 'option.informational', message: `-${name} prints information and ends; it does no work on media` },
      index,
      word,
    );
  const rule = table.get(name);
  const value = argv[index + 1];
  if (rule !== undefined) {
    if (colon >= 0 && !rule.specifier)
      return denial({ rule: 'option.specifier', message: `-${name} takes no stream specifier` }, index, word);
    if (colon >= 0 && !isSpecifier(specifier))
      return denial(
        {
          rule: 'option.specifier',
          message: `"${specifier}" is not a stream specifier; use v, a:0, s, m:language:eng and the like`,
        },
        index,
        word,
      );
    if (rule.arity === 0) return { name, specifier, value: undefined, index, rule };
    if (value === undefined)
      return denial(
        { rule: 'argv.value-missing', message: `-${name} is the last word; its value is missing` },
        index,
        word,
      );
    return { name, specifier, value, index, rule };
  }
  const av = value === undefined ? undefined : checkAvOption(name, value);
  const known = av !== undefined || refusedAvOption(name) !== undefined || checkAvOption(name, '') !== undefined;
  if (!known)
    return denial({ rule: 'option.unknown', message: `-${name} is not on the list of allowed options` }, index, word);
  if (value === undefined)
    return denial(
      { rule: 'argv.value-missing', message: `-${name} is the last word; its value is missing` },
      index,
      word,
    );
  if (colon >= 0 && !isSpecifier(specifier))
    return denial({ rule: 'option.specifier', message: `"${specifier}" is not a stream specifier` }, index, word);
  if (av !== undefined && !av.ok)
    return denial(
      av.problem,
      av.problem.rule === 'option.refused' ? index : index + 1,
      av.problem.rule === 'option.refused' ? word : value,
    );
  return { name, specifier, value, index, rule: 'av' };
}
