/**
 * Estimates how long the output of an ffmpeg argv will be, for the percentage only: a wrong guess may make a bar slow, never fail an op.
 * What is not reasonably known is `undefined`, and then no percentage is shown at all.
 */

/** Filters after which the length of an input says nothing about the length of the output. */
const LENGTH_CHANGING =
  /(^|[\],;[\s])(concat|xfade|acrossfade|loop|aloop|tpad|apad|setpts|asetpts|atempo|select|aselect|trim|atrim|reverse|areverse|minterpolate|movie|amovie)(=|[\s,;[@]|$)/;

/** "90", "90.5", "1:30", "01:00:30.25", "1500ms", "200us" → microseconds. */
export function parseDurationUs(text: string): number | undefined {
  const unit = /^(\d+(?:\.\d*)?|\.\d+)(s|ms|us)?$/.exec(text);
  if (unit) {
    const factor = unit[2] === 'ms' ? 1e3 : unit[2] === 'us' ? 1 : 1e6;
    return Number(unit[1]) * factor;
  }
  const clock = /^(?:(\d+):)?(\d{1,2}):(\d{1,2}(?:\.\d*)?)$/.exec(text);
  if (!clock) return undefined;
  return (Number(clock[1] ?? 0) * 3600 + Number(clock[2]) * 60 + Number(clock[3])) * 1e6;
}

/**
 * The length the argv itself promises: -t, or -to minus -ss, of the last output.
 * Input options are those before an -i, output options all after the last one.
 */
export function durationFromArgv(argv: readonly string[]): number | undefined {
  const lastInput = argv.lastIndexOf('-i');
  const output = argv.slice(lastInput === -1 ? 0 : lastInput + 2);
  const length = optionUs(output, '-t');
  if (length !== undefined) return length;
  const until = optionUs(output, '-to');
  if (until === undefined) return undefined;
  return Math.max(0, until - (optionUs(output, '-ss') ?? 0)) || undefined;
}

/** The length when each input's own is known (in the order of the -i options), or undefined when filters make it unknowable. */
export function durationFromInputs(
  argv: readonly string[],
  inputUs: readonly (number | undefined)[],
): number | undefined {
  if (argv.includes('-stream_loop') || argv.includes('-loop') || argv.some((part) => LENGTH_CHANGING.test(part)))
    return undefined;
  let longest: number | undefined;
  let index = 0;
  let from = 0;
  for (let at = argv.indexOf('-i'); at !== -1; at = argv.indexOf('-i', at + 2)) {
    const options = argv.slice(from, at);
    const own = inputUs[index];
    const capped = optionUs(options, '-t');
    if (own !== undefined || capped !== undefined) {
      const rest = own === undefined ? Number.POSITIVE_INFINITY : own - (optionUs(options, '-ss') ?? 0);
      const length = Math.min(rest, capped ?? Number.POSITIVE_INFINITY);
      if (Number.isFinite(length) && length > 0) longest = Math.max(longest ?? 0, length);
    }
    index += 1;
    from = at + 2;
  }
  if (longest === undefined) return undefined;
  const skipped = optionUs(argv.slice(from), '-ss') ?? 0;
  return longest > skipped ? longest - skipped : undefined;
}

/** Collects the `Duration:` lines that ffmpeg logs for each input; keeps no more than a line. */
export class InputDurations {
  readonly found: (number | undefined)[] = [];
  #rest = '';

  /** @returns true when a new line was found. */
  feed(text: string): boolean {
    if (this.found.length >= 64) return false;
    const before = this.found.length;
    const lines = (this.#rest + text).split('\n');
    this.#rest = (lines.pop() ?? '').slice(-512);
    for (const line of lines) {
      const match = /^ {2}Duration: (N\/A|[\d:.]+), /.exec(line);
      if (match) this.found.push(match[1] === 'N/A' ? undefined : parseDurationUs(match[1] ?? ''));
    }
    return this.found.length > before;
  }
}

function optionUs(options: readonly string[], name: string): number | undefined {
  const at = options.lastIndexOf(name);
  return at === -1 ? undefined : parseDurationUs(options[at + 1] ?? '');
}
