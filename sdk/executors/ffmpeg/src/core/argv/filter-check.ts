/**
 * Judges a parsed filtergraph: every filter on the list, every option known for it, positional values mapped to options as the running
 * ffmpeg maps them, file options resolved in the session. Anything not known is refused.
 */
import {
  DEFAULT_FILES,
  FILE_OPTIONS,
  type FileUse,
  REFUSED_FILTER_FAMILIES,
  REFUSED_FILTER_OPTIONS,
  REFUSED_FILTERS,
  REVIEWED_TEXT,
} from './filter-review.js';
import { type FilterTable, filterTable, GENERIC_OPTIONS, hasOptionIn, isTextType } from './filter-table.js';
import { type GraphFilter, parseGraph } from './filtergraph.js';
import { demuxerProblem } from './format-policy.js';
import type { SessionPaths } from './session-paths.js';
import type { Pair } from './token.js';
import { typedValueProblem } from './value-types.js';
import type { Problem } from './verdict.js';
import { utf8Bytes } from './words.js';

/** What a graph may use. */
export type GraphContext = { paths: SessionPaths; columns: readonly number[] };

/** A graph that passed: the text to run, and whether it prints to standard output. */
export type CheckedGraph = { ok: true; text: string; stdout: boolean } | { ok: false; problem: Problem };

/** Longest graph that still fits into one word of a command line, with what is added to it. */
const MAX_GRAPH_BYTES = 120_000;

/** Demuxers that movie= and amovie= may use; set through format_opts where the running version has that option. */
const MOVIE_WHITELIST =
  'mov,matroska,mpegts,mp3,wav,aac,flac,ogg,avi,gif,image2,png_pipe,jpeg_pipe,webp_pipe,bmp_pipe,tiff_pipe,apng,flv,asf,mpeg,mxf,h264,hevc,m4v,ivf,w64,aiff,caf';

/** Filters that open media and get that list; their arguments must end so that one more can follow. */
const WHITELISTED: ReadonlySet<string> = new Set(['movie', 'amovie']);

/** Checks a filtergraph text and gives back the text to run (movie= and amovie= with a format whitelist of the worker's). */
export function checkGraph(text: string, context: GraphContext): CheckedGraph {
  const graph = parseGraph(text);
  if (!graph.ok) return graph;
  let stdout = false;
  let out = '';
  let copied = 0;
  for (const filter of graph.filters) {
    const result = checkFilter(filter, context);
    if ('rule' in result) return { ok: false, problem: result };
    stdout ||= result.stdout;
    if (result.append !== undefined) {
      out += text.slice(copied, filter.argsEnd) + result.append;
      copied = filter.argsEnd;
    }
  }
  const whole = out + text.slice(copied);
  if (utf8Bytes(whole) > MAX_GRAPH_BYTES) {
    return {
      ok: false,
      problem: { rule: 'graph.syntax', message: `the graph is too long to be run (${MAX_GRAPH_BYTES} bytes)` },
    };
  }
  return { ok: true, text: whole, stdout };
}

function checkFilter(
  filter: GraphFilter,
  context: GraphContext,
): Problem | { stdout: boolean; append: string | undefined } {
  const { name } = filter;
  const reason = Object.hasOwn(REFUSED_FILTERS, name)
    ? REFUSED_FILTERS[name]
    : REFUSED_FILTER_FAMILIES.test(name)
      ? 'it opens a device'
      : undefined;
  if (reason !== undefined)
    return { rule: 'filter.refused', message: `the filter "${name}" is not allowed: ${reason}` };
  const table = filterTable(name, context.columns);
  if (table === undefined)
    return { rule: 'filter.unknown', message: `the filter "${name}" is not on the list of allowed filters` };
  let place = 0;
  let namedSeen = false;
  let stdout = false;
  const given = new Set<string>();
  for (const pair of filter.args) {
    const names = namesOf(pair, table, name, place, namedSeen);
    if ('rule' in names) return names;
    if (pair.key === undefined) place++;
    else namedSeen = true;
    for (const option of names) {
      given.add(option);
      const problem = optionProblem(name, option, pair.value, table, context);
      if (problem !== undefined) return problem;
    }
    if (pair.value === '-' && names.some((option) => FILE_OPTIONS[name]?.[option] === 'write-or-stdout')) stdout = true;
  }
  const fallback = Object.hasOwn(DEFAULT_FILES, name) ? DEFAULT_FILES[name] : undefined;
  if (fallback !== undefined && !given.has(fallback.option)) {
    const problem = optionProblem(name, fallback.option, fallback.name, table, context);
    if (problem !== undefined) return problem;
  }
  if (WHITELISTED.has(name) && /(^|[^\\])(\\\\)*\\$/.test(filter.argsText))
    return { rule: 'graph.syntax', message: `the arguments of "${name}" end with a lone backslash` };
  return { stdout, append: whitelistFor(filter, context) };
}

function namesOf(
  pair: Pair,
  table: FilterTable,
  filter: string,
  place: number,
  namedSeen: boolean,
): Problem | readonly string[] {
  if (pair.key !== undefined) {
    if (pair.key.startsWith('/'))
      return {
        rule: 'filter.from-file',
        message: `"${pair.key}=" loads an option from a file; write the value itself`,
      };
    return [pair.key];
  }
  if (namedSeen) return { rule: 'graph.syntax', message: `in "${filter}" a value without a name follows a named one` };
  const names = table.byPlace[place];
  if (names === undefined || names.length === 0)
    return {
      rule: 'filter.positional',
      message: `"${filter}" takes no value without a name in place ${place + 1}; write name=value`,
    };
  return names;
}

function optionProblem(
  filter: string,
  option: string,
  value: string,
  table: FilterTable,
  context: GraphContext,
): Problem | undefined {
  const refused = REFUSED_FILTER_OPTIONS[filter];
  if (refused !== undefined && Object.hasOwn(refused, option)) {
    return {
      rule: 'filter.option-refused',
      message: `the option "${option}" of "${filter}" is not allowed: ${refused[option]}`,
    };
  }
  const type = table.named.get(option);
  if (type === undefined)
    return { rule: 'filter.option-unknown', message: `"${filter}" has no option "${option}" on the list` };
  const files = FILE_OPTIONS[filter];
  if (files !== undefined && Object.hasOwn(files, option)) {
    const use = files[option];
    return use === undefined ? undefined : fileProblem(filter, option, use, value, context);
  }
  if (GENERIC_OPTIONS.has(option)) return undefined;
  if (!isTextType(type)) {
    return typedValueProblem(type, value) === undefined
      ? undefined
      : {
          rule: 'filter.value',
          message: `"${value}" is not a value for the option "${option}" (${type}) of "${filter}"`,
        };
  }
  if (!(REVIEWED_TEXT[filter] ?? '').split(' ').includes(option)) {
    return {
      rule: 'filter.option-unreviewed',
      message: `the text option "${option}" of "${filter}" is not on the reviewed list`,
    };
  }
  if (filter === 'drawtext' && option === 'font' && /[/\\]|file\s*=/i.test(value)) {
    return {
      rule: 'filter.value',
      message: 'font= takes the name of a font family; use fontfile= for a font file of the session',
    };
  }
  return undefined;
}

function fileProblem(
  filter: string,
  option: string,
  use: FileUse,
  value: string,
  context: GraphContext,
): Problem | undefined {
  const problem = fileUseProblem(use, value, context.paths);
  return problem === undefined
    ? undefined
    : { rule: problem.rule, message: `${filter} ${option}="${value}": ${problem.message}` };
}

function fileUseProblem(use: FileUse, value: string, paths: SessionPaths): Problem | undefined {
  switch (use) {
    case 'read':
      return paths.input(value, 'data');
    case 'read-media':
      return paths.looksLikeSequence(value) || /%[*?[\]{}]/.test(value)
        ? { rule: 'pattern.folder', message: 'a picture sequence may not be named in a filtergraph; give it with -i' }
        : paths.input(value, 'media');
    case 'read-directory':
      return paths.folder(value);
    case 'write':
      return paths.output(value);
    case 'write-or-stdout':
      return value === '-' ? undefined : paths.output(value);
    case 'demuxer':
      return demuxerProblem(value);
  }
}

/** Text to put behind the arguments of movie= and amovie=: their format whitelist, where every version that counts can have one. */
function whitelistFor(filter: GraphFilter, context: GraphContext): string | undefined {
  const { name } = filter;
  if (!WHITELISTED.has(name)) return undefined;
  if (filter.args.length === 0 || !hasOptionIn(name, 'format_opts', context.columns)) return undefined;
  // A separator that ends the arguments already is one: two of them would be a value between.
  const separator = /(^|[^\\])(\\\\)*:$/.test(filter.argsText) ? '' : ':';
  return `${separator}format_opts=format_whitelist=${MOVIE_WHITELIST.replaceAll(',', '\\,')}`;
}
