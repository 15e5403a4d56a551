/**
 * Reads the one TOML file of `reelhost up`. Decides nothing about processes; it only says what was asked for, with absolute paths, or names every
 * wrong key with its path in the file and what was expected. Relative paths are relative to the file. Secrets are never in it: it names files.
 */
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { resolveSocketPath } from '@reelhost/sdk';
import { parse, TomlError } from 'smol-toml';
import { z } from 'zod';
import { CommandError, ExitCode } from '../exit-codes.js';
import { EXECUTOR_NAMES } from '../handover.js';
import { expandHome, type HostPaths } from '../paths.js';

const LogLevel = z.enum(['trace', 'debug', 'info', 'warn', 'error']);
const Env = z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is no name of a variable'), z.string());

const Executor = z
  .strictObject({
    name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'must be lower-case letters, digits and "-"'),
    /** A program of your own, as an array; without it, the first-party executor of that name. */
    command: z.array(z.string().min(1)).min(1).optional(),
    args: z.array(z.string()).default([]),
    /** More processes of the same kind. */
    count: z.int().min(1).max(64).default(1),
    env: Env.default({}),
    pass_env: z.array(z.string()).default([]),
    working_dir: z.string().optional(),
  })
  .superRefine(({ name, command }, context) => {
    if (command !== undefined || EXECUTOR_NAMES.includes(name)) return;
    const message = `"${name}" is none of ours (${EXECUTOR_NAMES.join(', ')}); give the command of yours`;
    context.addIssue({ code: 'custom', path: ['name'], message });
  });

const Bridge = z
  .strictObject({
    enabled: z.boolean().default(true),
    gateway: z.url({ protocol: /^wss?$/, error: 'must be a wss:// address' }),
    insecure_dev: z.boolean().default(false),
    device_id: z.string().min(1).optional(),
    device_key: z.string().min(1).optional(),
    worker_name: z.string().min(1).optional(),
    pool_credential_file: z.string().min(1).optional(),
    slots: z.int().min(1).max(64).optional(),
    ca_file: z.string().optional(),
    drain_limit_sec: z.int().min(1).max(3_600).default(120),
    args: z.array(z.string()).default([]),
  })
  .superRefine((bridge, context) => {
    const device = bridge.device_id !== undefined && bridge.device_key !== undefined;
    const pool = bridge.worker_name !== undefined && bridge.pool_credential_file !== undefined;
    if (device === pool) {
      const message = 'give either device_id and device_key, or worker_name and pool_credential_file';
      context.addIssue({ code: 'custom', message });
    }
  });

const Restart = z.strictObject({
  first_pause_ms: z.int().min(10).max(60_000).default(500),
  max_pause_ms: z.int().min(10).max(600_000).default(30_000),
  max_deaths: z.int().min(0).max(1_000).default(10),
  window_sec: z.int().min(1).max(86_400).default(300),
});

const Config = z.strictObject({
  state_dir: z.string().optional(),
  socket: z.string().optional(),
  log_level: LogLevel.default('info'),
  broker: z.strictObject({ enabled: z.boolean().default(true), args: z.array(z.string()).default([]) }).prefault({}),
  bridge: Bridge.optional(),
  executor: z.array(Executor).default([]),
  restart: Restart.prefault({}),
});

/** One executor process kind to be kept running. */
export type ExecutorConfig = z.infer<typeof Executor>;

/** The file, checked, with absolute paths and all defaults filled in. */
export type UpConfig = Omit<z.infer<typeof Config>, 'state_dir' | 'socket'> & {
  readonly file: string;
  readonly stateDir: string;
  readonly socket: string;
};

/**
 * Reads and checks the file.
 * @throws CommandError badConfig: not found, no TOML, or wrong keys; the message lists every one of them
 */
export async function readConfig(places: HostPaths): Promise<UpConfig> {
  const { config: file } = places;
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new CommandError(ExitCode.badConfig, `${file}: ${whyUnreadable(error as NodeJS.ErrnoException)}`, {
      cause: error,
    });
  }
  return checkConfig(text, places);
}

function whyUnreadable({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'there is no such file; name one with --config (an example is in the README)';
  if (code === 'EISDIR') return 'is a folder; name a file with --config';
  if (code === 'EACCES') return 'may not be read by this user; change its owner or mode';
  return message;
}

/** Checks the text of a configuration; see {@link readConfig}. */
export function checkConfig(text: string, places: HostPaths): UpConfig {
  const { config: file } = places;
  let json: unknown;
  try {
    json = parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const [first = 'is not TOML'] = error.message.split('\n');
    throw new CommandError(ExitCode.badConfig, `${file}, line ${error.line}, column ${error.column}: ${first}`, {
      cause: error,
    });
  }
  const parsed = Config.safeParse(json);
  if (!parsed.success) {
    const lines = parsed.error.issues.map((issue) => `  ${describe(issue)}`);
    throw new CommandError(ExitCode.badConfig, `${file} is not right:\n${lines.join('\n')}`);
  }
  const { state_dir, socket, bridge, executor, ...rest } = parsed.data;
  const absolute = (path: string): string => expandHome(path, dirname(file));
  return {
    ...rest,
    file,
    stateDir: state_dir === undefined ? places.stateDir : absolute(state_dir),
    socket: socket === undefined ? places.socket : usableSocket(absolute(socket), file),
    bridge: bridge && {
      ...bridge,
      ...(bridge.device_key !== undefined && { device_key: absolute(bridge.device_key) }),
      ...(bridge.pool_credential_file !== undefined && { pool_credential_file: absolute(bridge.pool_credential_file) }),
      ...(bridge.ca_file !== undefined && { ca_file: absolute(bridge.ca_file) }),
    },
    executor: executor.map((one) => ({
      ...one,
      ...(one.working_dir !== undefined && { working_dir: absolute(one.working_dir) }),
    })),
  };
}

function usableSocket(path: string, file: string): string {
  try {
    return resolveSocketPath(path);
  } catch (error) {
    throw new CommandError(ExitCode.badConfig, `${file} is not right:\n  socket: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/** "executor[0].count: expected int …", never the value itself: it might be a secret in the wrong place. */
function describe(issue: z.core.$ZodIssue): string {
  const path = issue.path
    .map((key, at) => (typeof key === 'number' ? `[${key}]` : `${at === 0 ? '' : '.'}${String(key)}`))
    .join('');
  if (issue.code === 'unrecognized_keys') {
    const keys = issue.keys.map((key) => (path === '' ? key : `${path}.${key}`));
    return `${keys.join(', ')}: there is no such key`;
  }
  return `${path === '' ? 'the file' : path}: ${issue.message}`;
}
