/**
 * What the tests of ops share: one set of services with the real ffmpeg, and sessions in fresh folders. The broker is left out: ops are called as the
 * task handler calls them.
 */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TaskError } from '@reelhost/sdk';
import { openFontSet } from './fonts.js';
import { type MediaContext, runMediaOp } from './media-task.js';
import type { Services } from './ops/op-run.js';
import { findPrograms } from './probe/programs.js';
import { childEnvironment } from './process/child-environment.js';
import { createGuardian } from './process/guardian.js';
import { ownerMarker } from './process/marker.js';
import { selectSandbox } from './sandbox/select.js';
import { createTransport } from './transfer/transport.js';

export type Report = { stage: string; percent?: number; detail?: string };

/** The services of one executor, without a broker. */
export interface MediaKit {
  folder: string;
  /** The marker prefix of all children. */
  owner: string;
  services: Services;
  /** Programs that vanished, as reported by ops. */
  lost: string[];
  session(): Promise<MediaSession>;
  close(): Promise<void>;
}

/** What may differ for one op. */
export interface OpVariation {
  signal?: AbortSignal;
  limits?: object;
  services?: Partial<Services>;
}

/** One session in its own folder. */
export interface MediaSession {
  dir: string;
  reports: Report[];
  op(name: string, args?: object, more?: OpVariation): Promise<Record<string, unknown>>;
  /** Arguments separated by single blanks. */
  ffmpeg(line: string | readonly string[], more?: OpVariation, args?: object): Promise<Record<string, unknown>>;
  /** Runs ffmpeg and fails with its log when the exit code is not 0. @returns the end of the log. */
  encode(line: string | readonly string[]): Promise<string>;
  /** ffprobe's JSON. */
  probe(line: string): Promise<Probe>;
  file(name: string): Promise<Buffer>;
}

/** The part of ffprobe's JSON the tests look at. */
export interface Probe {
  format: { duration?: string; nb_streams?: number; format_name?: string };
  streams: {
    codec_type: string;
    codec_name: string;
    width?: number;
    height?: number;
    sample_rate?: string;
    channels?: number;
    nb_read_frames?: string;
  }[];
  frames?: { pkt_pts_time?: string; pts_time?: string; pict_type?: string }[];
}

/** `variables` name the programs, as the environment would. */
export async function openMediaKit(
  variables: Readonly<Record<string, string | undefined>> = process.env,
  sandbox: 'auto' | 'off' = 'auto',
): Promise<MediaKit> {
  const folder = await mkdtemp(join(tmpdir(), 'reelhost-ops-'));
  const owner = ownerMarker();
  let runs = 0;
  let sessions = 0;
  const lost: string[] = [];
  const nextMarker = (): string => {
    runs += 1;
    return `${owner}${runs}`;
  };
  const programs = await findPrograms({ variables, nextMarker });
  const fonts = await openFontSet(folder);
  const environment = childEnvironment({
    home: fonts.home,
    temporary: fonts.home,
    fontconfigFile: fonts.fontconfigFile,
  });
  const readable = { paths: [fonts.folder, fonts.fontconfigFile] };
  const guardian = createGuardian(owner);
  const services: Services = {
    programs,
    sandbox: await selectSandbox(sandbox, {
      ffmpeg: programs.ffmpeg,
      readable,
      environment,
      scratch: folder,
      nextMarker,
      note: () => undefined,
    }),
    transport: createTransport({ variables: {} }),
    guardian,
    nextMarker,
    environment,
    maxOutputBytes: 1 << 30,
    sessionQuotaBytes: 1 << 30,
    programLost: (program, message) => lost.push(`${program} ${message}`),
  };
  return {
    folder,
    owner,
    services,
    lost,
    async session() {
      sessions += 1;
      const dir = join(folder, `session-${sessions}`);
      await mkdir(dir, { mode: 0o700 });
      return makeSession(dir, services);
    },
    async close() {
      services.transport.close();
      await guardian.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function makeSession(dir: string, services: Services): MediaSession {
  const reports: Report[] = [];
  const op: MediaSession['op'] = (name, args, more = {}) => {
    const context: MediaContext = {
      signal: more.signal ?? new AbortController().signal,
      progress: (report) => void reports.push(report),
    };
    return runMediaOp({ op: name, args, session: { id: 's', dir, limits: more.limits } }, context, {
      ...services,
      ...more.services,
    });
  };
  const ffmpeg: MediaSession['ffmpeg'] = (line, more, args = {}) =>
    op('ffmpeg', { argv: words(line), timeoutSec: 60, ...args }, more);
  return {
    dir,
    reports,
    op,
    ffmpeg,
    async encode(line) {
      const result = await ffmpeg(line);
      if (result['exitCode'] !== 0)
        throw new Error(`ffmpeg ${words(line).join(' ')}\nended with ${result['exitCode']}:\n${result['stderrTail']}`);
      return String(result['stderrTail']);
    },
    async probe(line) {
      const result = await op('ffprobe', { argv: ['-v', 'error', '-of', 'json', ...words(line)], timeoutSec: 30 });
      if (result['exitCode'] !== 0)
        throw new Error(`ffprobe ${line}\nended with ${result['exitCode']}:\n${result['stderrTail']}`);
      return JSON.parse(String(result['stdout'])) as Probe;
    },
    file: (name) => readFile(join(dir, name)),
  };
}

/** The code of the TaskError an op ends with, or what it answered instead. */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    return `succeeded: ${JSON.stringify(await work).slice(0, 300)}`;
  } catch (error) {
    if (error instanceof TaskError) return error.code;
    throw error;
  }
}

function words(line: string | readonly string[]): string[] {
  return typeof line === 'string' ? line.split(' ') : [...line];
}
