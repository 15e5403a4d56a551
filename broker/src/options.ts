/** The command line of the broker. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { LIMITS, type LimitKey, type Settings, settingsOf } from './core/index.js';
import type { Durability } from './journal/journal.js';
import { limitsTable, type NamedLimits, readLimit, readValue } from './limit-options.js';
import { LOG_LEVELS, type LogLevel } from './log.js';

/** The command line of the broker, read and checked. */
export interface BrokerOptions {
  readonly socket?: string;
  readonly socketMode: number;
  readonly stateDir: string;
  readonly durability: Durability;
  readonly logLevel: LogLevel;
  readonly settings: Settings;
}

interface Flags extends Omit<BrokerOptions, 'socketMode' | 'settings'> {
  readonly socketMode: string;
  readonly queue: Readonly<Record<string, number>>;
}

function queueLimit(text: string, before: Readonly<Record<string, number>>): Record<string, number> {
  const at = text.lastIndexOf('=');
  if (at < 1) throw new InvalidArgumentError('must be NAME=NUMBER');
  return { ...before, [text.slice(0, at)]: readValue('queueConcurrency', text.slice(at + 1)) };
}

/** The limits that have a flag of their own as well. */
const FLAGS: readonly (readonly [flag: string, key: LimitKey])[] = [
  ['--max-connections <n>', 'maxConnections'],
  ['--queue-concurrency <n>', 'queueConcurrency'],
  ['--retain-hours <n>', 'retainHours'],
  ['--retain-jobs <n>', 'retainJobs'],
  ['--retain-mib <n>', 'retainMib'],
];

/** Reads the arguments after node and script. Help and mistakes are printed; then the exit code is answered instead. */
export function parseOptions(argv: readonly string[]): BrokerOptions | number {
  if (argv.includes('--limits')) {
    process.stdout.write(limitsTable());
    return 0;
  }
  // One place for what `--limit` and the flags of single limits say: the last word counts.
  let named: NamedLimits = {};
  const command = new Command('reelhost broker')
    .description(
      'The per-host daemon: owns the socket and the journal, hands jobs to executors. Runs until SIGTERM or SIGINT.',
    )
    .addOption(new Option('--socket <path>', 'socket path; default: TAY_SOCKET_PATH, then the usual places'))
    .addOption(new Option('--socket-mode <mode>', 'mode of the socket').choices(['0600', '0660']).default('0600'))
    .requiredOption('--state-dir <dir>', 'directory of the journal and of the sessions; made when it is missing')
    .addOption(
      new Option('--durability <level>', 'full: survives a power cut; normal: survives a crash')
        .choices(['full', 'normal'])
        .default('full'),
    )
    .addOption(new Option('--log-level <level>', 'least severe line to log').choices([...LOG_LEVELS]).default('info'));
  for (const [flag, key] of FLAGS) {
    const { meaning, value } = LIMITS[key];
    command.option(flag, `${meaning} (default: ${value})`, (text: string) => {
      named = { ...named, [key]: readValue(key, text) };
    });
  }
  command
    .option('--queue <name=n>', 'queue concurrency of one queue; may be repeated', queueLimit, {})
    .option('--limit <name=value>', 'sets one of the limits that --limits shows; may be repeated', (text: string) => {
      named = readLimit(text, named);
    })
    .option('--limits', 'print the names, defaults and ranges of all limits, and end')
    .addHelpText('after', '\nLimits take units: --limit max_frame_bytes=2MiB --limit hello_timeout_ms=5s')
    .allowExcessArguments(false)
    .exitOverride();
  try {
    command.parse(argv, { from: 'user' });
    const flags = command.opts<Flags>();
    const settings = settingsOf(named, flags.queue);
    if (typeof settings === 'string') return command.error(`error: limits contradict each other: ${settings}`);
    const { socket, stateDir, durability, logLevel } = flags;
    const place = socket === undefined ? {} : { socket };
    const socketMode = Number.parseInt(flags.socketMode, 8);
    return { ...place, socketMode, stateDir, durability, logLevel, settings };
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
}
