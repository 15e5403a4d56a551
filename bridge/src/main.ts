/**
 * The bridge daemon. Composes the core with its adapters and runs until a signal: lock → journal → control file → broker → gateway.
 *
 * It opens no port and executes nothing. Exit codes: 0 done, 2 usage, 5 already running, 75 drain cut short by a second signal, 78 configuration.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { exitOnCrash } from '@reelhost/log';
import { takeStateFolder } from '@reelhost/log/private-folder';
import { openStore } from './bridge-store.js';
import { BrokerLink } from './broker-link.js';
import { ConfigError } from './config-error.js';
import { watchControl } from './control-file.js';
import { DEFAULT_SETTINGS, type Input, initialState } from './core/index.js';
import { Driver } from './driver.js';
import { GatewayLink } from './gateway-link.js';
import { createLog } from './log.js';
import { type BridgeOptions, readOptions } from './options.js';
import { AlreadyRunning, lockStateDir } from './state-lock.js';
import { openStatusFile } from './status-file.js';
import { suspendClock } from './suspend-clock.js';

/** Runs the daemon with arguments as after `reelhost bridge`. Resolves with the exit code once it has ended. */
export async function run(argv: string[]): Promise<number> {
  let options: BridgeOptions | number;
  try {
    if (process.platform === 'win32') throw new ConfigError('Windows is not supported; use WSL2');
    options = readOptions(argv);
    if (typeof options === 'number') return options;
    makeStateDir(options.stateDir);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    createLog('error')('error', 'config.invalid', { reason: error.message });
    return 78;
  }
  let unlock: () => void;
  try {
    unlock = lockStateDir(options.stateDir);
  } catch (error) {
    if (!(error instanceof AlreadyRunning)) throw error;
    createLog('error')('error', 'already.running', { reason: error.message, pid: pidOf(options.stateDir) });
    return 5;
  }
  const endCrashWatch = exitOnCrash('bridge');
  try {
    return await serve(options);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    createLog('error')('error', 'config.invalid', { reason: error.message });
    return 78;
  } finally {
    endCrashWatch();
    unlock();
  }
}

async function serve(options: BridgeOptions): Promise<number> {
  const log = createLog(options.logLevel);
  const clock = suspendClock();
  const version = ownVersion();
  const store = openStore(options.stateDir, clock.bootId, (aside) =>
    log('error', 'journal.damaged', { movedTo: aside }),
  );
  const jobs = store.restore(clock.now());
  const settings = {
    ...DEFAULT_SETTINGS,
    slots: options.slots,
    agentVersion: version,
    kind: options.identity.kind,
    drainLimitMs: options.drainLimitMs,
    drainIdleMs: options.drainIdleMs,
    instance: randomUUID(),
  };
  log('info', 'bridge.started', {
    version,
    gateway: options.gateway.host,
    kind: options.identity.kind,
    restoredJobs: jobs.length,
  });
  let driver: Driver | null = null;
  const emit = (input: Input): void => driver?.input(input);
  const control = watchControl(
    options.stateDir,
    (change) => emit({ kind: 'pauseChanged', paused: change.paused }),
    () => log('warn', 'control.unreadable', { file: 'bridge.control.json' }),
  );
  driver = new Driver(initialState(settings, { jobs, paused: control.current().paused }, clock.now()));
  const running = driver;
  const { identity, gateway } = options;
  const status = openStatusFile(
    options.stateDir,
    {
      gateway: `${gateway.origin === 'null' ? `${gateway.protocol}//${gateway.host}` : gateway.origin}${gateway.pathname}`,
      name: identity.name,
      kind: identity.kind,
      version,
    },
    () => running.view(clock.now()),
    () => ({ pauseNote: control.current().note, pausedUntil: control.current().until }),
  );
  const link = new GatewayLink({ url: gateway, ca: options.ca, environment: process.env }, emit);
  const broker = new BrokerLink({
    socketPath: options.socketPath,
    owner: `${identity.kind}:${identity.name}`,
    version,
    emit,
    log,
    ownsSession: (localId) => running.ownsSession(localId),
  });
  const onSignal = (signal: NodeJS.Signals): void =>
    emit({ kind: 'stopRequested', reason: signal === 'SIGINT' ? 'interrupt' : 'shutdown' });
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  try {
    return await new Promise<number>((resolve) => {
      running.start({
        now: clock.now,
        random: Math.random,
        wallMs: () => Date.now(),
        log,
        store,
        identity,
        gateway,
        link,
        broker,
        onChange: status.changed,
        onExit: resolve,
      });
      broker.start();
    });
  } finally {
    process.off('SIGTERM', onSignal);
    process.off('SIGINT', onSignal);
    running.stop();
    link.stop();
    await broker.stop();
    control.close();
    status.close();
    store.close();
    log('info', 'bridge.stopped');
  }
}

/** @throws ConfigError when the folder cannot be made ours alone. */
function makeStateDir(stateDir: string): void {
  try {
    takeStateFolder(stateDir);
  } catch (error) {
    throw new ConfigError(`--state-dir: ${stateDir} cannot be used: ${(error as Error).message}`, error);
  }
}

function ownVersion(): string {
  const text = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  const manifest: unknown = JSON.parse(text);
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest
    ? String(manifest.version)
    : '0.0.0';
}

function pidOf(stateDir: string): number | null {
  try {
    const status: unknown = JSON.parse(readFileSync(`${stateDir}/bridge.status.json`, 'utf8'));
    return typeof status === 'object' && status !== null && 'pid' in status ? Number(status.pid) : null;
  } catch {
    return null;
  }
}
