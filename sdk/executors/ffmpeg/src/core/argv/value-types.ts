/**
 * Shapes of option values. The point is not to predict whether ffmpeg will like a value, but that a value which is not text cannot be
 * a file name, a URL or a piece of another language.
 */
import type { Problem } from './verdict.js';

const NUMBER = /^[-+.(\w][-+.\w()*/^, :]*$/;
const NAME = /^([A-Za-z0-9][\w.+-]*|-\d+)$/;

/** Longest value of an option that is not text. */
const MAX_VALUE = 1_024;

/** Patterns by the type names that `ffmpeg -h` prints. */
const PATTERNS: Readonly<Record<string, RegExp>> = {
  boolean: /^(auto|true|false|yes|no|y|n|on|off|enabled?|disabled?|[-+]?\d+)$/i,
  flags: /^[-+]?\w[\w.-]*([-+|,]\w[\w.-]*)*$/,
  duration: /^[-+]?[\d:.]+(us|ms|s)?$/,
  image_size: /^(\d+x\d+|[a-z0-9]+(-\w+)?)$/i,
  video_rate: /^[\w.+-]+([/:][\d.]+)?$/,
  color: /^[#\w.]+(@[\w.]+)?$/,
  pix_fmt: /^\+?[a-z0-9_]+$/,
  sample_fmt: /^[a-z0-9]+$/,
  channel_layout: /^[\w.()+ |-]+$/,
  binary: /^[0-9a-fA-F]*$/,
  rational: /^[-+]?[\w.]+([/:][\w.]+)?$/,
};

/** The problem with a value of an option of this type, or undefined. Array types (`[int]`) hold several values joined by `|` or `,`. */
export function typedValueProblem(type: string, value: string): Problem | undefined {
  const wrong: Problem = { rule: 'value.type', message: `"${value}" is not a value of type ${type}` };
  if (value.length > MAX_VALUE) return wrong;
  const element = /^\[(\w+)\]$/.exec(type)?.[1];
  const pattern = PATTERNS[element ?? type] ?? NUMBER;
  const pieces = element === undefined ? [value] : value.split(/[|,]/);
  if (pieces.every((piece) => pattern.test(piece) || NUMBER.test(piece)) && !/:\/|\.\.|\/\//.test(value))
    return undefined;
  return wrong;
}

/** Types of command line values, each with what it accepts and how a message names it. */
export const VALUE_TYPES = {
  number: [/^[-+]?(\d+(\.\d*)?|\.\d+|0x[0-9a-f]+)(e[-+]?\d+)?([kKMGTP]i?)?[bB]?$/, 'a number such as 25, 0.5, 128k'],
  time: [/^[-+]?(\d+:)?(\d+:)?\d*(\.\d*)?(us|ms|s)?$/, 'a time such as 12.5, 00:01:30.250 or 500ms'],
  size: [/^(\d+x\d+|[a-z0-9]+(-\w+)?)$/i, 'a size such as 1280x720 or hd720'],
  rate: [/^[\w.+-]+([/:][\d.]+)?$/, 'a rate such as 25, 30000/1001 or ntsc'],
  ratio: [/^(demux|filter|-1|[\d.]+([:/][\d.]+)?)$/, 'a ratio such as 16:9 or 1.7778'],
  name: [NAME, 'a name'],
  pixels: [/^\+?[a-z0-9_]*$/, 'a pixel format such as yuv420p'],
  flags: [/^[-+]?\w[\w.-]*([-+|,]\w[\w.-]*)*$/, 'flag names joined by "+"'],
  loglevel: [
    /^\+?([a-z]+\+)*(quiet|panic|fatal|error|warning|info|verbose|debug|trace|-?\d+|repeat|level|[a-z]+)$/,
    'a log level such as error, or level+warning',
  ],
  map: [/^(-?\d+(:[^,[\]]*)?(,\d+(:[^,[\]]*)?)?|\[[^[\]]+\])$/, 'a stream such as 0:v:0?, -0:s or [label]'],
  'map-file': [/^-?\d+(:[\w:#.=-]+)?(\?)?$/, 'a file index such as 0, 1:s:0 or -1'],
  metadata: [/^[^=]+=[\s\S]*$/, 'key=value'],
  disposition: [/^[-+]?\w+([-+]\w+)*$/, 'a disposition such as default or default+forced'],
  keyframes: [
    /^(expr:[\s\S]*|source|source_no_drop|scd_metadata|[-+\d:.,a-z ]+)$/i,
    'times, "source", "chapters" or "expr:…"',
  ],
  layout: [/^[\w.()+ |-]+$/, 'a channel layout such as stereo or 5.1(side)'],
  matrix: [/^[\d, ]+$/, 'numbers joined by ","'],
  token: [/^[\w.,:;+\-*@()|=/ %#]*$/, 'letters, digits and . , : ; + - * = ( ) | % #'],
  tag: [/^[\x20-\x7e]{1,16}$/, 'a four character tag'],
  streams: [/^[\w:#.=?\-[\]*, ]*$/, 'a stream specifier such as v:0'],
  text: [/^[\s\S]*$/, 'text'],
  date: [/^(now|[\dTZ:.\- ]+)$/i, 'a date or "now"'],
  zeroOne: [/^[01]$/, '0 or 1'],
  pass: [/^[123]$/, '1, 2 or 3'],
  index: [/^\d{1,2}$/, 'the number of a device'],
  hwaccel: [
    /^(none|auto|cuda|nvdec|cuvid|qsv|videotoolbox|vaapi|d3d11va|dxva2)$/,
    'none, auto, cuda, qsv, videotoolbox, vaapi, d3d11va or dxva2',
  ],
  stdout: [/^(pipe:1|-)$/, '"pipe:1"'],
} as const satisfies Readonly<Record<string, readonly [RegExp, string]>>;

/** Name of a command line value type. */
export type ValueType = keyof typeof VALUE_TYPES;

/** The problem with a command line value, or undefined. */
export function valueProblem(type: ValueType, value: string): Problem | undefined {
  const [pattern, words] = VALUE_TYPES[type];
  return pattern.test(value) ? undefined : { rule: 'value.type', message: `expected ${words}` };
}

/** A stream or metadata specifier behind an option name (`v`, `a:0`, `s:a:1`, `p:1:v`, `m:language:eng`, `g`, `c:0`). */
export function isSpecifier(text: string): boolean {
  return (
    /^(g|u|\d+|#\w+|i:\w+|[vVasdt](:.+)?|c(:\d+)?|p:\d+(:.+)?|g:.+|m:[^:]+(:.+)?|disp:[\w+-]+(:.+)?|s(:.+)?)$/.test(
      text,
    ) && /^[\w:#.+\- ]+$/.test(text)
  );
}
