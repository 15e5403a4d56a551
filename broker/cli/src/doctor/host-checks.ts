/** Checks of this computer: platform, places, permissions, disk, ffmpeg, sandbox. They change nothing. */
import { execFile } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { constants } from 'node:fs';
import { access, readFile, stat, statfs } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { EXECUTOR_NAMES } from '../handover.js';
import type { HostPaths } from '../paths.js';
import { type CheckResult, fail, pass, skip, warn } from './check.js';

const run = promisify(execFile);
const LOW_DISK_BYTES = 5 * 1024 ** 3;
const NO_DISK_BYTES = 512 * 1024 ** 2;
const PROBE_WITHIN_MS = 10_000;

/** Windows is not supported yet; said first, because nothing else would make sense. */
export function checkPlatform(): CheckResult {
  const found = `${process.platform} ${process.arch}, node ${process.versions.node}`;
  if (process.platform === 'win32')
    return fail('platform', `${found} is not supported yet`, 'use Linux or macOS; WSL works');
  return pass('platform', found);
}

/** The socket's folder belongs to nobody else. That its path fits is certain already: see paths.ts and up/config.ts. */
export async function checkSocket({ socket }: HostPaths): Promise<CheckResult> {
  const folder = await stat(dirname(socket)).catch(() => undefined);
  const own = process.getuid?.();
  if (folder !== undefined && own !== undefined && folder.uid !== own && own !== 0) {
    return fail('socket', `${dirname(socket)} belongs to another user`, 'choose another --socket');
  }
  if (folder !== undefined && (folder.mode & 0o022) !== 0 && (folder.mode & 0o1000) === 0) {
    return warn('socket', `others may write to ${dirname(socket)}`, `chmod 700 ${dirname(socket)}`);
  }
  return pass('socket', socket);
}

/** The state directory can be written, and there is room for a session. */
export async function checkStateDir({ stateDir }: HostPaths): Promise<CheckResult> {
  const existing = await nearestExisting(stateDir);
  try {
    await access(existing, constants.W_OK | constants.X_OK);
  } catch {
    return fail(
      'state_dir',
      `${existing} cannot be written by this user`,
      'choose another --state-dir, or change its owner',
    );
  }
  const disk = await statfs(existing);
  const free = disk.bavail * disk.bsize;
  const room = `${(free / 1024 ** 3).toFixed(1)} GiB free`;
  if (free < NO_DISK_BYTES)
    return fail('state_dir', `${stateDir}: ${room}`, 'free some space: a job needs room for its media');
  if (free < LOW_DISK_BYTES)
    return warn('state_dir', `${stateDir}: ${room}`, 'free some space, or set a session quota');
  return pass('state_dir', `${stateDir}, ${room}`);
}

/** ffmpeg and ffprobe run and are of the same build. */
export async function checkFfmpeg(env: NodeJS.ProcessEnv): Promise<CheckResult> {
  const install =
    process.platform === 'darwin'
      ? 'brew install ffmpeg'
      : 'install ffmpeg with the package manager (apt install ffmpeg), or set REELHOST_FFMPEG and REELHOST_FFPROBE';
  const versions: string[] = [];
  for (const [name, variable] of [
    ['ffmpeg', 'REELHOST_FFMPEG'],
    ['ffprobe', 'REELHOST_FFPROBE'],
  ] as const) {
    const file = env[variable] ?? (await onPath(name, env));
    if (file === undefined) return fail('ffmpeg', `there is no ${name} on PATH`, install);
    try {
      const { stdout } = await run(file, ['-hide_banner', '-version'], { timeout: PROBE_WITHIN_MS });
      versions.push(/version (\S+)/.exec(stdout)?.[1] ?? 'unknown');
    } catch (error) {
      return fail('ffmpeg', `${file} does not run: ${(error as Error).message.split('\n')[0]}`, install);
    }
  }
  const [ffmpeg = '', ffprobe = ''] = versions;
  if (ffmpeg !== ffprobe) return warn('ffmpeg', `ffmpeg is ${ffmpeg}, ffprobe ${ffprobe}`, 'take both from one build');
  const [, major = '', minor = ''] = /^n?(\d+)\.(\d+)/.exec(ffmpeg) ?? [];
  const isOld = major !== '' && (Number(major) < 4 || (Number(major) === 4 && Number(minor) < 4));
  if (isOld) return warn('ffmpeg', `ffmpeg ${ffmpeg} is old and misses years of repairs`, install);
  return pass('ffmpeg', `ffmpeg ${ffmpeg}`);
}

/** What will confine ffmpeg: the executor's own choice, made by its self-test with the ffmpeg that will run. */
export async function checkSandbox(env: NodeJS.ProcessEnv): Promise<CheckResult> {
  const install =
    process.platform === 'linux'
      ? 'apt install bubblewrap, and allow unprivileged user namespaces; or util-linux 2.41 or newer for Landlock'
      : 'there is none for this system; the argv validator alone protects it';
  try {
    const { reportSandbox } = await import('@reelhost/executor-ffmpeg/sandbox-report');
    const { name, network, notTaken } = await reportSandbox(env);
    const why = notTaken.length === 0 ? '' : ` (${notTaken.join('; ')})`;
    if (name === 'none') return warn('sandbox', `none: ffmpeg would run unconfined${why}`, install);
    if (network === 'open') return warn('sandbox', `${name}, which leaves the network open${why}`, install);
    return pass('sandbox', `${name}, network closed${why}`);
  } catch {
    // What is wrong with ffmpeg says the check of that name.
    return skip('sandbox', 'cannot be tried without a usable ffmpeg');
  }
}

/** The device key is there, private, and an Ed25519 key. @param file undefined when the configuration names none */
export async function checkDeviceKey(file: string | undefined): Promise<CheckResult> {
  if (file === undefined) return skip('device_key', 'the configuration names no device key');
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) return fail('device_key', `${file} does not exist`, `reelhost device init --out ${file}`);
  if ((found.mode & 0o077) !== 0) return fail('device_key', `others may read ${file}`, `chmod 600 ${file}`);
  const anew = `choose another file, or move it away and run: reelhost device init --out ${file}`;
  try {
    const { asymmetricKeyType } = createPrivateKey(await readFile(file));
    if (asymmetricKeyType === 'ed25519') return pass('device_key', file);
    return fail('device_key', `${file} holds a key of type ${asymmetricKeyType}; Ed25519 is needed`, anew);
  } catch {
    return fail('device_key', `${file} holds no private key in PEM that this user can read`, anew);
  }
}

/** What can be started here. */
export function checkExecutors(): CheckResult {
  return pass('executors', `first-party: ${EXECUTOR_NAMES.join(', ')}`);
}

async function nearestExisting(path: string): Promise<string> {
  const there = await stat(path).then(
    () => true,
    () => false,
  );
  return there || dirname(path) === path ? path : nearestExisting(dirname(path));
}

async function onPath(name: string, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  for (const folder of (env['PATH'] ?? '').split(delimiter).filter((one) => one !== '')) {
    const file = join(folder, name);
    const usable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return file;
  }
  return undefined;
}
