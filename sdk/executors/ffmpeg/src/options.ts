/** Command line and environment of the executor: names, defaults, limits. Nothing is read later than here. */
import { parseArgs } from 'node:util';
import { LOG_LEVELS, type LogLevel } from '@reelhost/log';

/** What `run` works with; sizes in bytes. */
export interface ExecutorOptions {
  socketPath?: string;
  runtimeId?: string;
  ffmpeg?: string;
  ffprobe?: string;
  concurrency: number;
  sandbox: 'auto' | 'required' | 'off';
  maxOutputBytes: number;
  sessionQuotaBytes: number;
  caFile?: string;
  logLevel: LogLevel;
}

const SANDBOXES: readonly string[] = ['auto', 'required', 'off'];
const GIB = 1024 ** 3;

/** What `--help` prints. */
export const USAGE = `usage: reelhost executor ffmpeg --socket PATH [options]

Serves video.compile and video.analyze.extract sessions with the ffmpeg of this computer.

  --socket PATH              the broker's Unix socket (default: TAY_SOCKET_PATH, then the usual places)
  --ffmpeg PATH              the ffmpeg to run (default: REELHOST_FFMPEG, then PATH)
  --ffprobe PATH             the ffprobe to run (default: REELHOST_FFPROBE, then PATH)
  --concurrency N            ops at a time, one per session (default 4)
  --sandbox MODE             auto: the best that passes its self-test; required: serve nothing without one; off
  --max-output-bytes N       largest single file written or published (default 4 GiB)
  --session-quota-bytes N    largest sum of all files of a session (default 32 GiB)
  --ca-file FILE             PEM file with an additional certificate authority for object stores
  --runtime-id ID            the name of this executor at the broker
  --log-level LEVEL          trace, debug, info, warn, error, fatal or silent (default info)
  --help
`;

/** A mistake in the command line; the message says which option and what is expected. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** @throws UsageError; `'help'` when only the usage was asked for. */
export function parseOptions(argv: readonly string[]): ExecutorOptions | 'help' {
  let values: Record<string, string | boolean | undefined>;
  try {
    ({ values } = parseArgs({
      args: [...argv],
      allowPositionals: false,
      options: {
        socket: { type: 'string' },
        ffmpeg: { type: 'string' },
        ffprobe: { type: 'string' },
        concurrency: { type: 'string' },
        sandbox: { type: 'string' },
        'max-output-bytes': { type: 'string' },
        'session-quota-bytes': { type: 'string' },
        'ca-file': { type: 'string' },
        'runtime-id': { type: 'string' },
        'log-level': { type: 'string' },
        help: { type: 'boolean', short: 'h' },
      },
    }));
  } catch (error) {
    throw new UsageError((error as Error).message, { cause: error });
  }
  if (values['help']) return 'help';
  const text = (name: string): string | undefined => (typeof values[name] === 'string' ? values[name] : undefined);
  const sandbox = oneOf('sandbox', text('sandbox') ?? 'auto', SANDBOXES) as ExecutorOptions['sandbox'];
  const logLevel = oneOf('log-level', text('log-level') ?? 'info', LOG_LEVELS) as LogLevel;
  const optional = {
    socketPath: text('socket'),
    runtimeId: text('runtime-id'),
    ffmpeg: text('ffmpeg'),
    ffprobe: text('ffprobe'),
    caFile: text('ca-file'),
  };
  return {
    ...(Object.fromEntries(
      Object.entries(optional).filter(([, value]) => value !== undefined),
    ) as Partial<ExecutorOptions>),
    concurrency: whole('concurrency', text('concurrency') ?? '4', 1, 64),
    sandbox,
    maxOutputBytes: whole('max-output-bytes', text('max-output-bytes') ?? String(4 * GIB), 1, Number.MAX_SAFE_INTEGER),
    sessionQuotaBytes: whole(
      'session-quota-bytes',
      text('session-quota-bytes') ?? String(32 * GIB),
      1,
      Number.MAX_SAFE_INTEGER,
    ),
    logLevel,
  };
}

function oneOf(name: string, value: string, allowed: readonly string[]): string {
  if (allowed.includes(value)) return value;
  throw new UsageError(`--${name} is one of ${allowed.join(', ')}, not "${value}"`);
}

function whole(name: string, value: string, low: number, high: number): number {
  const number = Number(value);
  if (/^\d+$/.test(value) && number >= low && number <= high) return number;
  throw new UsageError(`--${name} is a whole number from ${low} to ${high}, not "${value}"`);
}
