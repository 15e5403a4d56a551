/**
 * Turns a configuration into the processes that `up` keeps running: which program, which arguments, which environment. Starts nothing.
 *
 * The daemons inherit the environment (proxies, certificates, locale); an executor gets a short list and what its block names, because it may be
 * a program of somebody else.
 */
import { COMMAND_FILE } from '../command-file.js';
import { PARENT_PIPE_VARIABLE } from '../parent-pipe.js';
import type { ExecutorConfig, UpConfig } from './config.js';

/** In which order parts are stopped: whoever takes work first, the journal last. */
export type PartKind = 'broker' | 'executor' | 'bridge';

/** One process to keep running. */
export interface PartPlan {
  readonly name: string;
  readonly kind: PartKind;
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir: string | undefined;
  /** How long it may take to stop before it is ended, in milliseconds. */
  readonly stopWithinMs: number;
  /** A final end of this part ends everything. */
  readonly vital: boolean;
}

const STOP_WITHIN_MS = 15_000;
/** Added to the bridge's own drain limit, so that the bridge decides and not we. */
const DRAIN_MARGIN_MS = 10_000;

/** What every executor may know of its surroundings. */
const EXECUTOR_ENVIRONMENT = [
  'PATH',
  'HOME',
  'USER',
  'LANG',
  'TZ',
  'TMPDIR',
  'XDG_RUNTIME_DIR',
  'XDG_CACHE_HOME',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
];

/** All parts, in the order in which they are started. */
export function planParts(config: UpConfig, logLevel: string, env: NodeJS.ProcessEnv): PartPlan[] {
  const places = ['--socket', config.socket];
  const common = ['--log-level', logLevel];
  const inherited = { ...defined(env), [PARENT_PIPE_VARIABLE]: '1' };
  const daemon = { file: process.execPath, env: inherited, workingDir: undefined, vital: true };
  const parts: PartPlan[] = [];
  if (config.broker.enabled) {
    parts.push({
      ...daemon,
      name: 'broker',
      kind: 'broker',
      args: [COMMAND_FILE, 'broker', ...places, '--state-dir', config.stateDir, ...common, ...config.broker.args],
      stopWithinMs: STOP_WITHIN_MS,
    });
  }
  for (const executor of config.executor) parts.push(...planExecutor(executor, [...places, ...common], env, config));
  if (config.bridge?.enabled === true) {
    parts.push({
      ...daemon,
      name: 'bridge',
      kind: 'bridge',
      args: [
        COMMAND_FILE,
        'bridge',
        ...places,
        '--state-dir',
        config.stateDir,
        ...common,
        ...bridgeFlags(config.bridge),
      ],
      stopWithinMs: config.bridge.drain_limit_sec * 1_000 + DRAIN_MARGIN_MS,
    });
  }
  return parts;
}

function bridgeFlags(bridge: NonNullable<UpConfig['bridge']>): string[] {
  const flag = (name: string, value: string | number | undefined): string[] =>
    value === undefined ? [] : [name, String(value)];
  return [
    ...flag('--gateway', bridge.gateway),
    ...(bridge.insecure_dev ? ['--insecure-dev'] : []),
    ...flag('--device-id', bridge.device_id),
    ...flag('--device-key', bridge.device_key),
    ...flag('--worker-name', bridge.worker_name),
    ...flag('--pool-credential-file', bridge.pool_credential_file),
    ...flag('--slots', bridge.slots),
    ...flag('--ca-file', bridge.ca_file),
    ...flag('--drain-limit-sec', bridge.drain_limit_sec),
    ...bridge.args,
  ];
}

function planExecutor(
  executor: ExecutorConfig,
  flags: readonly string[],
  env: NodeJS.ProcessEnv,
  config: UpConfig,
): PartPlan[] {
  const [program, ...own] = executor.command ?? [process.execPath, COMMAND_FILE, 'executor', executor.name, ...flags];
  const passed = [...EXECUTOR_ENVIRONMENT, ...executor.pass_env];
  const keep = (name: string): boolean => passed.includes(name) || /^(?:REELHOST_|LC_)/.test(name);
  const child = {
    kind: 'executor' as const,
    file: program ?? process.execPath,
    args: [...own, ...executor.args],
    env: {
      ...Object.fromEntries(Object.entries(defined(env)).filter(([name]) => keep(name))),
      ...executor.env,
      // A worker built on the plain tay-client finds the socket here.
      TAY_SOCKET_PATH: config.socket,
      ...(executor.command === undefined && { [PARENT_PIPE_VARIABLE]: '1' }),
    },
    workingDir: executor.working_dir,
    stopWithinMs: STOP_WITHIN_MS,
    vital: false,
  };
  const names = Array.from({ length: executor.count }, (_, at) =>
    executor.count === 1 ? `executor ${executor.name}` : `executor ${executor.name} ${at + 1}`,
  );
  return names.map((name) => ({ ...child, name }));
}

function defined(env: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}
