/**
 * `reelhost argv check`: tells an engine developer whether an argv would be allowed in a session directory, by which rule it is
 * refused, and what exactly would run. It runs nothing and changes nothing.
 */
import { existsSync, realpathSync, statSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { type ArgvVerdict, checkArgv } from './core/argv/check.js';
import { findPrograms } from './probe/programs.js';
import { sessionFiles } from './session-files.js';

/** Where the command reads and writes. */
export type ArgvCheckStreams = { stdin: Readable; stdout: Writable; stderr: Writable };

const USAGE = `usage: reelhost argv check [--session DIR] [--ffmpeg-version V] [--tool ffmpeg|ffprobe] [--json] -- ARGV...
       reelhost argv check --jsonl [--ffmpeg-version V] < lines

Says whether the executor would run ARGV in the session directory DIR (default: the current directory), and what it would run.
--jsonl reads one object a line, {"id", "tool", "argv", "session"}, and answers {"id", "verdict", "rule", "argument", "argv"} a line each.
--ffmpeg-version is the release that will run, such as 7.1; without it the ffmpeg that the executor would find is asked, and if there is
none an argv must be safe for every release known.
Exit codes: 0 allowed (with --jsonl: every line was answered), 1 refused, 2 usage.
`;

/** Longest line of --jsonl input in characters. */
const MAX_LINE_CHARACTERS = 8 * 1024 * 1024;

type Tool = 'ffmpeg' | 'ffprobe';
type Options = {
  session: string;
  version: string | undefined;
  tool: Tool;
  format: 'text' | 'json' | 'jsonl';
  argv: string[];
};

/** Runs the command with the words behind `argv check`; answers the exit code. */
export async function runArgvCheck(words: readonly string[], streams: ArgvCheckStreams = process): Promise<number> {
  const options = parse(words);
  if (typeof options === 'string') {
    streams.stderr.write(options === '' ? USAGE : `${options}\n\n${USAGE}`);
    return options === '' ? 0 : 2;
  }
  const version = options.version ?? (await installedVersion());
  if (options.format === 'jsonl') return checkLines(options, version, streams);
  if (!isDirectory(options.session)) {
    streams.stderr.write(`the session directory does not exist: ${options.session}\n`);
    return 2;
  }
  const verdict = check(options.tool, options.argv, options.session, version);
  if (/^(?:.*\/)?ff(?:mpeg|probe)$/.test(options.argv[0] ?? ''))
    streams.stderr.write(`ARGV is what follows the program's name: leave "${options.argv[0]}" out\n`);
  streams.stdout.write(
    options.format === 'json' ? `${JSON.stringify(answer(undefined, verdict))}\n` : readable(options.tool, verdict),
  );
  return verdict.verdict === 'allow' ? 0 : 1;
}

function parse(words: readonly string[]): Options | string {
  const options: Options = { session: '.', version: undefined, tool: 'ffmpeg', format: 'text', argv: [] };
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    if (word === '--') {
      options.argv = words.slice(at + 1);
      break;
    }
    if (word === '--help' || word === '-h') return '';
    if (word === '--json' || word === '--jsonl') {
      options.format = word === '--json' ? 'json' : 'jsonl';
      continue;
    }
    const [name = '', inline] = word.split(/=(.*)/s);
    if (name !== '--session' && name !== '--ffmpeg-version' && name !== '--tool')
      return `unknown option ${word}; put the argv behind "--"`;
    const value = inline ?? words[++at];
    if (value === undefined) return `${name} needs a value`;
    if (name === '--session') options.session = value;
    else if (name === '--ffmpeg-version') options.version = value;
    else if (value === 'ffmpeg' || value === 'ffprobe') options.tool = value;
    else return `--tool is ffmpeg or ffprobe, not "${value}"`;
  }
  if (options.format !== 'jsonl' && options.argv.length === 0) return 'there is no argv; put it behind "--"';
  return options;
}

/** What the ffmpeg that an executor would use calls itself; "unknown" when there is none. */
async function installedVersion(): Promise<string> {
  try {
    const programs = await findPrograms({ variables: process.env, nextMarker: () => 'argv-check' });
    return programs.version;
  } catch {
    return 'unknown';
  }
}

function isDirectory(path: string): boolean {
  return existsSync(path) && statSync(path).isDirectory();
}

function check(tool: Tool, argv: readonly string[], session: string, version: string): ArgvVerdict {
  return checkArgv({ tool, argv, files: sessionFiles(realpathSync(session)), version });
}

function answer(id: unknown, verdict: ArgvVerdict): object {
  const named = id === undefined ? {} : { id };
  return verdict.verdict === 'allow'
    ? {
        ...named,
        verdict: 'allow',
        rule: null,
        argument: null,
        argv: verdict.rebuild(),
        inputs: verdict.inputs,
        outputs: verdict.outputs,
      }
    : {
        ...named,
        verdict: 'deny',
        rule: verdict.rule,
        argument: verdict.argument,
        argv: null,
        index: verdict.index,
        message: verdict.message,
      };
}

function readable(tool: Tool, verdict: ArgvVerdict): string {
  if (verdict.verdict === 'deny') return `deny   ${verdict.rule}\n${verdict.message}\n`;
  const words = verdict
    .rebuild()
    .map((word) => (/^[\w./:=,+@%-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`));
  return `allow\n${tool} ${words.join(' ')}\n`;
}

async function checkLines(options: Options, version: string, streams: ArgvCheckStreams): Promise<number> {
  const lines = createInterface({ input: streams.stdin, crlfDelay: Number.POSITIVE_INFINITY });
  for await (const line of lines) {
    if (line.trim() === '') continue;
    streams.stdout.write(`${JSON.stringify(checkLine(line, options, version))}\n`);
  }
  return 0;
}

/** One line's answer; a line that is no question is answered too, so that questions and answers stay in step. */
function checkLine(line: string, options: Options, version: string): object {
  const bad = (id: unknown, message: string): object => ({
    id: id ?? null,
    verdict: 'deny',
    rule: 'question.invalid',
    argument: null,
    argv: null,
    message,
  });
  if (line.length > MAX_LINE_CHARACTERS) return bad(null, `a line may have ${MAX_LINE_CHARACTERS} characters`);
  let question: unknown;
  try {
    question = JSON.parse(line);
  } catch {
    return bad(null, 'the line is not JSON');
  }
  if (typeof question !== 'object' || question === null || Array.isArray(question))
    return bad(null, 'the line is not an object');
  const { id, tool, argv, session } = question as Record<string, unknown>;
  const chosen = tool ?? options.tool;
  if (chosen !== 'ffmpeg' && chosen !== 'ffprobe') return bad(id, 'tool is "ffmpeg" or "ffprobe"');
  if (!Array.isArray(argv) || !argv.every((word): word is string => typeof word === 'string'))
    return bad(id, 'argv is an array of strings');
  const directory = session ?? options.session;
  if (typeof directory !== 'string' || !isDirectory(directory)) return bad(id, 'session is an existing directory');
  return answer(id ?? null, check(chosen, argv, directory, version));
}
