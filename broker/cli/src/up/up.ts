/**
 * `reelhost up`: one file, one command. Checks the configuration, refuses when a broker answers on the socket already, keeps the parts running, and
 * stops them in order on SIGTERM or SIGINT; a second signal hurries. Ends by itself only when a part without which nothing works is given up, with that
 * part's exit code.
 */
import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { makePrivateFolder } from '@reelhost/log/private-folder';
import { DEFAULT_RESTART_POLICY, type RestartPolicy } from '../core/supervision.js';
import { checkDeviceKey } from '../doctor/host-checks.js';
import { CommandError, ExitCode } from '../exit-codes.js';
import { watchParentPipe } from '../parent-pipe.js';
import { hostPaths } from '../paths.js';
import { print } from '../terminal.js';
import { readConfig, type UpConfig } from './config.js';
import { type UpLog, upLog } from './log.js';
import { type PartPlan, planParts } from './plan.js';
import { endPredecessor } from './predecessor.js';
import { removeUpStatus, writeUpStatus } from './status-file.js';
import { Supervisor } from './supervisor.js';

/** Runs until stopped. @returns the exit code */
export async function up(options: { config?: string; check?: boolean; logLevel?: string }): Promise<number> {
  if (process.platform === 'win32') {
    throw new CommandError(
      ExitCode.badConfig,
      'reelhost up does not run on Windows yet; use Linux or macOS (WSL works)',
    );
  }
  const config = await readConfig(hostPaths({ config: options.config }));
  const plans = planParts(config, options.logLevel ?? config.log_level, process.env);
  if (plans.length === 0) throw new CommandError(ExitCode.badConfig, `${config.file} starts nothing`);
  if (options.check === true) {
    await checkNamedFiles(config);
    print(`${config.file} is right; it starts: ${plans.map((plan) => plan.name).join(', ')}`);
    return ExitCode.done;
  }
  const log = upLog(process.stderr);
  await endPredecessor(config.stateDir, log);
  if (config.broker.enabled && (await somebodyAnswers(config.socket))) {
    throw new CommandError(
      ExitCode.alreadyRunning,
      `a broker answers on ${config.socket} already; stop it first, or set [broker] enabled = false to use it`,
    );
  }
  makeFolder('state_dir', config.stateDir);
  // The broker makes a folder only for its own default socket.
  makeFolder('socket', dirname(config.socket));
  watchParentPipe();
  return run(config, plans, log);
}

function makeFolder(setting: string, path: string): void {
  try {
    makePrivateFolder(path);
  } catch (cause) {
    throw new CommandError(ExitCode.badConfig, `${setting}: ${(cause as Error).message}; name another place`, {
      cause,
    });
  }
}

/** What the daemons would find out at their start. @throws CommandError badConfig */
async function checkNamedFiles({ file, bridge }: UpConfig): Promise<void> {
  const wrong: string[] = [];
  const key = await checkDeviceKey(bridge?.device_key);
  if (key.state === 'fail') wrong.push(`bridge.device_key: ${key.message}; ${key.fix}`);
  for (const name of ['pool_credential_file', 'ca_file'] as const) {
    const path = bridge?.[name];
    if (path === undefined) continue;
    await access(path, constants.R_OK).catch(() => wrong.push(`bridge.${name}: ${path} cannot be read`));
  }
  if (wrong.length > 0) throw new CommandError(ExitCode.badConfig, `${file} is not right:\n  ${wrong.join('\n  ')}`);
}

async function run(config: UpConfig, plans: readonly PartPlan[], log: UpLog): Promise<number> {
  const head = { config: config.file, startedAt: Date.now() };
  let stopping = false;
  let code: number = ExitCode.done;
  let finish = (): void => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });

  const supervisor = new Supervisor(policyOf(config), {
    clock: Date.now,
    log,
    onChange: (parts) => writeUpStatus(config.stateDir, head, parts),
    onVitalFailure: ({ name, state }) => {
      code = state.lastExit?.code ?? ExitCode.unexpected;
      stop(`${name} was given up`);
    },
  });

  function stop(why: string): void {
    if (stopping) {
      log('warn', 'up.hurries', { why });
      supervisor.hurry();
      return;
    }
    stopping = true;
    log('info', 'up.stops', { why });
    void supervisor.stop().then(finish);
  }

  const onSignal = (name: NodeJS.Signals): void => stop(name);
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal).on('SIGHUP', onSignal);
  log('info', 'up.starts', { config: config.file, stateDir: config.stateDir, socket: config.socket });
  supervisor.start(plans);
  await finished;
  process.off('SIGTERM', onSignal).off('SIGINT', onSignal).off('SIGHUP', onSignal);
  removeUpStatus(config.stateDir);
  log(code === ExitCode.done ? 'info' : 'error', 'up.stopped', { exitCode: code });
  return code;
}

function policyOf({ restart }: UpConfig): RestartPolicy {
  return {
    ...DEFAULT_RESTART_POLICY,
    firstPauseMs: restart.first_pause_ms,
    maxPauseMs: restart.max_pause_ms,
    maxDeaths: restart.max_deaths,
    windowMs: restart.window_sec * 1_000,
  };
}

function somebodyAnswers(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket);
    const end = (answers: boolean): void => {
      connection.destroy();
      resolve(answers);
    };
    connection.once('connect', () => end(true)).once('error', () => end(false));
  });
}
