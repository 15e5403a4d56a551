/**
 * Finds the ffmpeg and ffprobe that will run, and learns their version by running them.
 *
 * Order: the option, REELHOST_FFMPEG / REELHOST_FFPROBE, PATH. Nothing is downloaded and nothing is bundled. A build older than 4.4 has years of
 * unfixed decoder bugs: one that was named explicitly is taken with a warning, one that was merely found on PATH is refused.
 */
import { constants } from 'node:fs';
import { access, realpath, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join, resolve } from 'node:path';
import { HeadBuffer } from '../core/output-tail.js';
import { isOlderThan, type ProgramVersion, parseVersion } from '../core/version.js';
import { runChild } from '../process/child.js';

/** The oldest release that is accepted without being asked for. */
export const OLDEST = { major: 4, minor: 4 };
/** A program that has not told its version by then is not usable. */
export const PROBE_TIMEOUT_MS = 10_000;
const PROBE_OUTPUT_BYTES = 1 << 20;

/** A matching pair; paths are absolute and resolved. `version` is what `ffmpeg -version` calls itself. */
export interface Programs {
  ffmpeg: string;
  ffprobe: string;
  version: string;
  parsed: ProgramVersion;
  /** What the operator should hear about them. */
  warnings: string[];
}

/** Why there is no usable pair, and what to do. */
export class ProgramsMissing extends Error {
  override readonly name = 'ProgramsMissing';
}

/** Where to look. */
export interface ProgramSearch {
  ffmpeg?: string | undefined;
  ffprobe?: string | undefined;
  variables: Readonly<Record<string, string | undefined>>;
  /** Gives each probe its marker. */
  nextMarker(): string;
}

/** @throws ProgramsMissing with the install command of the platform, or with what is wrong with the program that was named. */
export async function findPrograms(search: ProgramSearch): Promise<Programs> {
  const ffmpeg = await locate('ffmpeg', search.ffmpeg ?? search.variables['REELHOST_FFMPEG'], search);
  const ffprobe = await locate('ffprobe', search.ffprobe ?? search.variables['REELHOST_FFPROBE'], search);
  const [banner] = await Promise.all([
    versionBanner('ffmpeg', ffmpeg.path, search),
    versionBanner('ffprobe', ffprobe.path, search),
  ]);
  const parsed = parseVersion(banner);
  const warnings: string[] = [];
  if (isOlderThan(parsed, OLDEST)) {
    const old = `${ffmpeg.path} is ffmpeg ${parsed.text}, older than ${OLDEST.major}.${OLDEST.minor}`;
    if (!ffmpeg.named) throw new ProgramsMissing(`${old}: ${installHint()}`);
    warnings.push(`${old}; it has known decoder bugs and is fit for development only`);
  }
  return { ffmpeg: ffmpeg.path, ffprobe: ffprobe.path, version: parsed.text, parsed, warnings };
}

/** Runs a program for its standard output; undefined when it hangs, floods or fails. Never longer than PROBE_TIMEOUT_MS. */
export async function probeOutput(
  program: string,
  argv: readonly string[],
  more: { marker: string; timeoutMs?: number; environment?: Readonly<Record<string, string>>; cwd?: string },
): Promise<string | undefined> {
  const head = new HeadBuffer(PROBE_OUTPUT_BYTES);
  let stop: (reason: 'quota') => void = () => undefined;
  const outcome = await runChild({
    program,
    argv,
    cwd: more.cwd ?? '/',
    env: more.environment ?? { PATH: '/usr/bin:/bin', LANG: 'C.UTF-8' },
    marker: more.marker,
    timeoutMs: more.timeoutMs ?? PROBE_TIMEOUT_MS,
    killAfterMs: 500,
    onStarted: (_pid, stopper) => {
      stop = stopper;
    },
    onStdout: (chunk) => {
      head.feed(chunk);
      if (head.truncated) stop('quota');
    },
  });
  if (outcome.kind === 'not_started') throw Object.assign(new Error(outcome.message), { code: outcome.code });
  if (outcome.stopped !== null || outcome.exitCode !== 0) return undefined;
  return Buffer.from(head.bytes()).toString('utf8');
}

async function locate(
  name: 'ffmpeg' | 'ffprobe',
  given: string | undefined,
  search: ProgramSearch,
): Promise<{ path: string; named: boolean }> {
  if (given) {
    const path = given.includes('/') || isAbsolute(given) ? resolve(given) : await onPath(given, search);
    if (path === undefined) throw new ProgramsMissing(`no program "${given}" on PATH`);
    const problem = await whyNotRunnable(path);
    if (problem !== undefined) throw new ProgramsMissing(`${name} was named as ${path}, but ${problem}`);
    return { path: await realpath(path), named: true };
  }
  const found = await onPath(name, search);
  if (found === undefined)
    throw new ProgramsMissing(`no ${name} on PATH and REELHOST_${name.toUpperCase()} is not set: ${installHint()}`);
  return { path: await realpath(found), named: false };
}

async function onPath(name: string, search: ProgramSearch): Promise<string | undefined> {
  for (const folder of (search.variables['PATH'] ?? '').split(delimiter)) {
    if (!isAbsolute(folder)) continue;
    const path = join(folder, name);
    if ((await whyNotRunnable(path)) === undefined) return path;
  }
  return undefined;
}

async function whyNotRunnable(path: string): Promise<string | undefined> {
  try {
    if (!(await stat(path)).isFile()) return 'it is no file';
    await access(path, constants.X_OK);
    return undefined;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === 'ENOENT'
      ? 'there is nothing'
      : code === 'EACCES'
        ? 'it may not be executed (chmod +x)'
        : `it cannot be used (${code})`;
  }
}

async function versionBanner(name: 'ffmpeg' | 'ffprobe', path: string, search: ProgramSearch): Promise<string> {
  let output: string | undefined;
  try {
    output = await probeOutput(path, ['-hide_banner', '-version'], { marker: search.nextMarker() });
  } catch (cause) {
    throw new ProgramsMissing(`${path} cannot be started: ${(cause as Error).message}`, { cause });
  }
  if (output === undefined)
    throw new ProgramsMissing(`${path} -version failed or did not answer within ${PROBE_TIMEOUT_MS / 1000} s`);
  if (!output.startsWith(`${name} version `)) throw new ProgramsMissing(`${path} does not call itself ${name}`);
  return output;
}

/** The command that installs ffmpeg here. */
export function installHint(platform: NodeJS.Platform = process.platform): string {
  switch (platform) {
    case 'darwin':
      return 'install it with "brew install ffmpeg"';
    case 'linux':
      return 'install it with the package manager ("sudo apt install ffmpeg", "sudo dnf install ffmpeg", "sudo pacman -S ffmpeg", "sudo apk add ffmpeg")';
    default:
      return 'install ffmpeg 4.4 or newer and put it on PATH';
  }
}
