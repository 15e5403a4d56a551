/**
 * Judges an output and every other name its muxer makes files from: segments, lists, init segments, master playlists, variants.
 */
import type { NamedValue } from './av-options.js';
import type { GivenFile } from './command-line.js';
import { outputKind } from './format-policy.js';
import type { OptionContext } from './option-check.js';
import { extensionOf, foldedPath, normalPath, parentOf, pathProblem } from './path-rules.js';
import { outputPattern } from './session-paths.js';
import type { Problem } from './verdict.js';

/** A problem, with the word it is about. */
export type OutputProblem = Problem & { index: number; argument: string };

type Named = readonly { value: NamedValue; index: number }[];

/** Judges an output; undefined when all its names are fine. */
export function outputProblem(
  file: GivenFile,
  kind: ReturnType<typeof outputKind>,
  named: Named,
  context: OptionContext,
): OutputProblem | undefined {
  const own = (problem: Problem | undefined): OutputProblem | undefined =>
    problem === undefined ? undefined : { ...problem, index: file.index, argument: file.name };
  const first = nameProblem(file, kind, named, context);
  if (first !== undefined) return own(first);
  for (const { value, index } of named) {
    const problem = namedProblem(value, file.name, context);
    if (problem !== undefined)
      return { rule: problem.rule, message: `-${value.option}: ${problem.message}`, index, argument: value.value };
  }
  return own(passProblem(file, context));
}

function nameProblem(
  file: GivenFile,
  kind: ReturnType<typeof outputKind>,
  named: Named,
  context: OptionContext,
): Problem | undefined {
  const { name } = file;
  if (name === '-') {
    if (kind.ok && kind.kind === 'null') return undefined;
    return {
      rule: 'output.stdout',
      message: '"-" is allowed only with -f null; write the output to a file of the session',
    };
  }
  const problem = pathProblem(name);
  if (problem !== undefined) return problem;
  if (!kind.ok) return undefined;
  switch (kind.kind) {
    case 'null':
      return undefined;
    case 'file':
      return context.paths.output(name);
    case 'image':
      return templated(name, '', context);
    case 'segment': {
      const template = templated(name, '', context);
      return template;
    }
    case 'hls': {
      const pattern = outputPattern(name, 'v');
      if (!pattern.ok) return pattern.problem;
      const stem = normalPath(name).replace(/\.[^./]*$/, '');
      const segments = named.some((one) => one.value.option === 'hls_segment_filename')
        ? undefined
        : context.paths.output(`${stem}%d.ts`, derivedFrom(stem));
      return context.paths.output(name, pattern.pattern) ?? segments;
    }
    case 'dash': {
      const folder = parentOf(normalPath(name));
      const own = context.paths.output(name);
      return (
        own ??
        context.paths.output(
          folder === '' ? 'init-stream0.m4s' : `${folder}/init-stream0.m4s`,
          derivedFrom(folder === '' ? 'init-stream' : `${folder}/init-stream`),
        )
      );
    }
  }
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
}

function derivedFrom(stem: string): RegExp {
  return new RegExp(`^${escaped(foldedPath(stem)).replaceAll('%v', '[^/]+')}-?\\d+\\.(ts|m4s|vtt|mp4|aac)$`);
}

function templated(name: string, letters: string, context: OptionContext): Problem | undefined {
  const pattern = outputPattern(name, letters);
  return pattern.ok ? context.paths.output(name, pattern.pattern) : pattern.problem;
}

function namedProblem(named: NamedValue, output: string, context: OptionContext): Problem | undefined {
  const { value, use } = named;
  switch (use) {
    case 'output':
      return (
        pathProblem(value) ??
        templated(
          value,
          named.option === 'hls_segment_filename' || named.option === 'hls_subtitle_path' ? 'v' : '',
          context,
        )
      );
    case 'derived-name': {
      const problem = pathProblem(value);
      if (problem !== undefined) return problem;
      const folder = parentOf(normalPath(output));
      const path = folder === '' ? value : `${folder}/${value}`;
      if (/[$%]/.test(value))
        return /^[\w$%./ -]+$/.test(value)
          ? context.paths.output(path, /^(?!)/)
          : {
              rule: 'pattern.output',
              message: 'only letters, digits, . - _ and $Number$-like fields are allowed in this name',
            };
      return context.paths.output(path, path.includes('%') ? /^(?!)/ : undefined);
    }
    case 'prefix':
      if (value === '') return undefined;
      return (
        pathProblem(value) ??
        (/%/.test(value) ? { rule: 'pattern.output', message: '"%" is not allowed in a prefix' } : undefined)
      );
    case 'variant-map':
      return /^([a-z]+:[\w-]+)([, ][a-z]+:[\w-]+)*$/i.test(value.trim().replace(/ +/g, ' '))
        ? undefined
        : {
            rule: 'value.variants',
            message: 'expected groups such as "v:0,a:0,name:low v:1,a:1"; names may hold letters, digits, "-" and "_"',
          };
    case 'segment-format': {
      const kind = outputKind(value, '');
      if (!kind.ok) return kind.problem;
      return kind.kind === 'file'
        ? undefined
        : { rule: 'muxer.unknown', message: `"${value}" cannot be the format of segments` };
    }
  }
}

/** Two-pass encoding writes PREFIX-0.log (and .mbtree) beside the session's files: no link may wait there. */
function passProblem(file: GivenFile, context: OptionContext): Problem | undefined {
  const pass = file.options.some((option) => option.name === 'pass');
  const flags = file.options.some((option) => option.name === 'flags' && /pass[12]/.test(option.value ?? ''));
  if (!pass && !flags) return undefined;
  if (file.options.some((option) => option.name === 'passlogfile')) return undefined;
  return context.paths.output('ffmpeg2pass', /^(?!)/);
}

export { extensionOf };
