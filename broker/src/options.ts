/** The command line of the broker. */
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import type { Durability } from './journal/journal.js';
import { LOG_LEVELS, type LogLevel } from './log.js';

export interface BrokerOptions {
  readonly socket?: string;
  readonly socketMode: number;
  readonly stateDir: string;
  readonly durability: Durability;
  readonly logLevel: LogLevel;
  readonly maxConnections: number;
  readonly queueConcurrency: number;
  readonly queue: Readonly<Record<string, number>>;
  readonly retainHours: number;
  readonly retainJobs: number;
  readonly retainMib: number;
}

function whole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max)
      throw new InvalidArgumentError(`must be a whole number from ${min} to ${max}`);
    return value;
  };
}

function queueLimit(text: string, before: Readonly<Record<string, number>>): Record<string, number> {
  const at = text.lastIndexOf('=');
  if (at < 1) throw new InvalidArgumentError('must be NAME=NUMBER');
  return { ...before, [text.slice(0, at)]: whole(1, 65_535)(text.slice(at + 1)) };
}

/** Reads the arguments after node and script. Help and mistakes are printed; then the exit code is answered instead. */
export function parseOptions(argv: readonly string[]): BrokerOptions | number {
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
    .addOption(new Option('--log-level <level>', 'least severe line to log').choices([...LOG_LEVELS]).default('info'))
    .option('--max-connections <n>', 'connections at once', whole(1, 4096), 128)
    .option('--queue-concurrency <n>', 'jobs of one queue that may run at once', whole(1, 65_535), 10)
    .option('--queue <name=n>', 'the same for one queue; may be repeated', queueLimit, {})
    .option('--retain-hours <n>', 'age at which a finished job is forgotten', whole(1, 87_600), 168)
    .option('--retain-jobs <n>', 'finished jobs that are kept', whole(0, 100_000_000), 200_000)
    .option(
      '--retain-mib <n>',
      'size of the journal above which the oldest finished jobs go',
      whole(1, 1_048_576),
      1024,
    )
    .allowExcessArguments(false)
    .exitOverride();
  try {
    command.parse(argv, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
  const options = command.opts<Omit<BrokerOptions, 'socketMode'> & { socketMode: string }>();
  return { ...options, socketMode: Number.parseInt(options.socketMode, 8) };
}
