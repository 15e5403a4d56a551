/**
 * What an accepted argv means. The words to run are built from this and from nothing else.
 */
import type { InputKind, OutputKind } from './format-policy.js';

/** An option in the words to run. */
export type ModelOption = { words: readonly string[]; name: string };

/** An input: its own options and how it is opened. */
export type ModelInput = { name: string; kind: InputKind; formatWhitelist: string; options: readonly ModelOption[] };

/** An output: its own options and what its name stands for. `durationUs` is its -t or -to in microseconds, when given as a time. */
export type ModelOutput = {
  name: string;
  kind: OutputKind;
  muxer: string;
  options: readonly ModelOption[];
  durationUs: number | undefined;
};

/** An accepted command. `stdout` tells whether a filter prints to standard output, which then cannot carry progress. */
export type CommandModel = {
  tool: 'ffmpeg' | 'ffprobe';
  global: readonly ModelOption[];
  /** Inputs and outputs in the order of argv. */
  files: readonly (({ role: 'input' } & ModelInput) | ({ role: 'output' } & ModelOutput))[];
  stdout: 'free' | 'used';
};

/** What the worker may add. `progress`: where ffmpeg reports progress (`true` is `pipe:1`; not added while standard output is in use). */
export type RebuildOptions = { progress?: boolean | string };

/** Protocols an input may use (remote specification, "Media session ops and argv validation"). */
export const PROTOCOL_WHITELIST = 'file,pipe';

/** The words to run, without the program. */
export function rebuildArgv(model: CommandModel, options: RebuildOptions = {}): string[] {
  const words = model.tool === 'ffmpeg' ? ['-nostdin', '-hide_banner'] : ['-hide_banner'];
  const skipped = new Set(['nostdin', 'hide_banner']);
  const target = options.progress === true ? 'pipe:1' : options.progress;
  const own =
    model.tool === 'ffmpeg' && typeof target === 'string' && !(target === 'pipe:1' && model.stdout === 'used');
  if (own) {
    words.push('-progress', target);
    skipped.add('progress');
  }
  for (const option of model.global) if (!skipped.has(option.name)) words.push(...option.words);
  for (const file of model.files) {
    for (const option of file.options) if (!skipped.has(option.name)) words.push(...option.words);
    if (file.role === 'input')
      words.push('-protocol_whitelist', PROTOCOL_WHITELIST, '-format_whitelist', file.formatWhitelist, '-i', file.name);
    else words.push(file.name);
  }
  return words;
}
