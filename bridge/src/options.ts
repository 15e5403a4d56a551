/** The command line of the daemon: options to settings, every mistake with a sentence that says what to do. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import { resolveSocketPath } from '@reelhost/sdk';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { ConfigError } from './config-error.js';
import { DEFAULT_SETTINGS } from './core/index.js';
import { gatewayUrl } from './gateway-url.js';
import { deviceIdentity, type Identity, poolIdentity } from './identity.js';
import { LOG_LEVELS, type LogLevel } from './log.js';

/** A bridge that can start. */
export type BridgeOptions = {
  readonly socketPath: string;
  readonly stateDir: string;
  readonly gateway: URL;
  readonly identity: Identity;
  readonly slots: number;
  readonly drainLimitMs: number;
  readonly drainIdleMs: number;
  readonly ca: readonly string[] | undefined;
  readonly logLevel: LogLevel;
};

type Raw = {
  socket?: string;
  stateDir: string;
  gateway: string;
  insecureDev?: boolean;
  deviceId?: string;
  deviceKey?: string;
  workerName?: string;
  poolCredentialFile?: string;
  slots: number;
  caFile?: string;
  drainLimitSec: number;
  drainIdleSec: number;
  logLevel: LogLevel;
};

const MAX_SLOTS = 64;

function wholeNumber(low: number, high: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < low || value > high)
      throw new InvalidArgumentError(`a whole number from ${low} to ${high}`);
    return value;
  };
}

/**
 * Reads the arguments (without node and script).
 * @returns the options, or an exit code when everything is said (--help) or the usage was wrong (2).
 * @throws ConfigError when the options are well-formed but cannot be used.
 */
export function readOptions(argv: readonly string[]): BridgeOptions | number {
  const command = new Command('reelhost bridge')
    .description('Hold the one connection to a gateway and turn its jobs into local ones')
    .option('--socket <path>', 'Unix socket of the broker (default: found as the other commands find it)')
    .requiredOption('--state-dir <dir>', 'where the bridge keeps its journal and status file')
    .requiredOption('--gateway <url>', 'wss://host (without a path: /v1/connect)')
    .option('--insecure-dev', 'allow ws:// to this computer')
    .option('--device-id <id>', 'id of the paired device')
    .option('--device-key <file>', 'Ed25519 private key of the device (PKCS#8 PEM, mode 0600)')
    .option('--worker-name <name>', 'name of this pool worker')
    .option('--pool-credential-file <file>', 'file with the pool credential (mode 0600)')
    .option('--slots <n>', 'jobs at the same time', wholeNumber(1, MAX_SLOTS), DEFAULT_SETTINGS.slots)
    .option('--ca-file <file>', 'further root certificates (PEM), added to the default ones')
    .option('--drain-limit-sec <sec>', 'longest drain', wholeNumber(1, 3_600), DEFAULT_SETTINGS.drainLimitMs / 1_000)
    .option(
      '--drain-idle-sec <sec>',
      'a drain ends an idle session after this',
      wholeNumber(0, 3_600),
      DEFAULT_SETTINGS.drainIdleMs / 1_000,
    )
    .addOption(
      new Option('--log-level <level>', 'least level of the log on stderr').choices(LOG_LEVELS).default('info'),
    )
    .exitOverride();
  try {
    command.parse([...argv], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
  const raw = command.opts<Raw>();
  return {
    socketPath: socketOf(raw.socket),
    stateDir: raw.stateDir,
    gateway: gatewayUrl(raw.gateway, raw.insecureDev === true),
    identity: identityOf(raw),
    slots: raw.slots,
    drainLimitMs: raw.drainLimitSec * 1_000,
    drainIdleMs: raw.drainIdleSec * 1_000,
    ca: raw.caFile === undefined ? undefined : readCa(raw.caFile),
    logLevel: raw.logLevel,
  };
}

/** Found once at the start, so that a wrong path is a clear error and not an endless wait. @throws ConfigError */
function socketOf(path: string | undefined): string {
  try {
    return resolveSocketPath(path);
  } catch (error) {
    throw new ConfigError(error instanceof Error ? error.message : '--socket: not usable', error);
  }
}

function identityOf(raw: Raw): Identity {
  const { deviceId, deviceKey, workerName, poolCredentialFile } = raw;
  if (
    deviceId !== undefined &&
    deviceKey !== undefined &&
    workerName === undefined &&
    poolCredentialFile === undefined
  ) {
    return deviceIdentity(deviceId, deviceKey);
  }
  if (
    workerName !== undefined &&
    poolCredentialFile !== undefined &&
    deviceId === undefined &&
    deviceKey === undefined
  ) {
    return poolIdentity(workerName, poolCredentialFile);
  }
  throw new ConfigError('who is this? give --device-id and --device-key, or --worker-name and --pool-credential-file');
}

/** The default roots and those of the file. Never a fall-back to an unverified connection. @throws ConfigError */
function readCa(file: string): string[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(`--ca-file: ${file} cannot be read`, error);
  }
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new ConfigError(`--ca-file: ${file} holds no certificate in PEM`);
  try {
    for (const block of blocks) new X509Certificate(block);
  } catch (error) {
    throw new ConfigError(`--ca-file: ${file} holds a certificate that cannot be read`, error);
  }
  return [...rootCertificates, ...blocks];
}
