/** `reelhost doctor`: is this computer ready, and if not, what mends it? Exit code 10 when a check failed. Changes nothing, sends no credential. */
import { CommandError, ExitCode } from '../exit-codes.js';
import { hostPaths, type PathOptions } from '../paths.js';
import { colorsFor, print, printJson } from '../terminal.js';
import { readConfig, type UpConfig } from '../up/config.js';
import { version } from '../version.js';
import { type CheckResult, fail, pass, skip } from './check.js';
import {
  checkDeviceKey,
  checkExecutors,
  checkFfmpeg,
  checkPlatform,
  checkSandbox,
  checkSocket,
  checkStateDir,
} from './host-checks.js';
import { checkGateway } from './network-checks.js';

/** Runs all checks and prints them. @param options.strict warnings count as failures */
export async function doctor(
  options: PathOptions & { json?: boolean; strict?: boolean; color: boolean | undefined },
): Promise<number> {
  const places = hostPaths(options);
  const [configResult, config] = await checkConfiguration(options, places.config);
  const actual = config === undefined ? places : { ...places, stateDir: config.stateDir, socket: config.socket };
  const results = [
    checkPlatform(),
    configResult,
    ...(await Promise.all([
      checkStateDir(actual),
      checkSocket(actual),
      checkFfmpeg(process.env),
      checkSandbox(process.env),
      checkDeviceKey(config?.bridge?.device_key),
    ])),
    checkExecutors(),
    ...(await checkGateway(config?.bridge?.gateway, config?.bridge?.ca_file)),
  ];
  const bad = results.filter(({ state }) => state === 'fail' || (options.strict === true && state === 'warn'));
  if (options.json === true) {
    printJson({
      schema: 'reelhost.doctor/1',
      reelhost: version,
      node: process.versions.node,
      ok: bad.length === 0,
      checks: results,
    });
  } else {
    printResults(results, options.color);
    print(bad.length === 0 ? '\nready' : `\n${bad.length} to mend`);
  }
  return bad.length === 0 ? ExitCode.done : ExitCode.doctorFailed;
}

function printResults(results: readonly CheckResult[], color: boolean | undefined): void {
  const colors = colorsFor(process.stdout, color);
  const word = {
    pass: colors.green('pass'),
    warn: colors.yellow('warn'),
    fail: colors.red('FAIL'),
    skip: colors.dim('skip'),
  };
  for (const { code, state, message, fix } of results) {
    print(`${word[state]}  ${code.padEnd(11)} ${message}`);
    if (fix !== null) print(`      ${''.padEnd(11)} ${colors.dim(fix)}`);
  }
}

/** Without a file nothing is wrong yet; with `--config` it must be there. */
async function checkConfiguration(options: PathOptions, file: string): Promise<[CheckResult, UpConfig | undefined]> {
  try {
    const config = await readConfig(hostPaths(options));
    return [pass('config', file), config];
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    const missing = (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT';
    if (missing && options.config === undefined) return [skip('config', `there is none at ${file}`), undefined];
    return [fail('config', error.message, 'mend the file; reelhost up --check says when it is right'), undefined];
  }
}
