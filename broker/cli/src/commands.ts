/**
 * Declares every command that is not a daemon: flags, help, examples. Each action imports its module when it is chosen. A wrong
 * command line ends with exit code 2 and the nearest match; bad values say which flag.
 */
import { Command, CommanderError, Option } from 'commander';
import { parseDurationMs } from './duration.js';
import { CommandError, ExitCode } from './exit-codes.js';
import { printVersions, version } from './version.js';

interface Places {
  socket?: string;
  stateDir?: string;
}

const DAEMON_HELP = `
Daemons (each runs in the foreground, logs to stderr and ends on SIGTERM; see "reelhost broker --help"):
  broker                    own the socket, the journal and dispatch
  bridge                    hold the connection to the gateway
  executor NAME             run an executor: ffmpeg
  argv check                say what the validator thinks of an ffmpeg argv

Examples:
  $ npx reelhost doctor
  $ npx reelhost device init --out device.pem
  $ npx reelhost up --config reelhost.toml
  $ npx reelhost status --json

Environment: REELHOST_HOME, REELHOST_CONFIG, REELHOST_STATE_DIR, TAY_SOCKET_PATH, REELHOST_FFMPEG, REELHOST_FFPROBE, NO_COLOR, FORCE_COLOR
Exit codes: 0 done, 1 unexpected, 2 usage, 3 not running, 4 unhealthy, 5 already running, 6 timed out, 10 doctor found failures,
            69 gateway unreachable, 75 try again, 77 not paired or revoked, 78 bad configuration`;

/** Parses and runs. @returns the exit code @throws CommandError for every foreseen end */
export async function runCommand(argv: string[]): Promise<number> {
  let code: number = ExitCode.done;
  const program = declare((result) => {
    code = result;
  });
  try {
    await program.parseAsync(argv, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // commander has printed its message already; help and version end with 0.
    return error.exitCode === 0 ? ExitCode.done : ExitCode.usage;
  }
  return code;
}

function declare(end: (code: number) => void): Command {
  const program = new Command('reelhost')
    .description('Turns this computer into a dependable runner for video work.')
    .version(version, '--version', 'print the version')
    .addOption(new Option('--color', 'colour even when the output is no terminal'))
    .addOption(new Option('--no-color', 'no colour'))
    .helpOption('-h, --help', 'print this help')
    .helpCommand(false)
    .showSuggestionAfterError()
    .showHelpAfterError('(see: reelhost --help)')
    .exitOverride()
    .addHelpText('after', DAEMON_HELP);
  // Without a default, so that "said nothing" and "said yes" differ.
  const color = (): boolean | undefined =>
    program.getOptionValueSource('color') === 'cli' ? (program.opts()['color'] as boolean) : undefined;

  const command = (name: string, summary: string, examples: string): Command => {
    const created = program.command(name).description(summary);
    return examples === '' ? created : created.addHelpText('after', `\nExamples:\n${examples}`);
  };
  const withPlaces = (target: Command): Command =>
    target
      .option('--socket <path>', "the broker's socket (TAY_SOCKET_PATH)")
      .option('--state-dir <dir>', 'the state directory (REELHOST_STATE_DIR)');

  command(
    'up',
    'Start broker, bridge and executors from one file, and restart what dies.',
    '  $ reelhost up\n  $ reelhost up --config reelhost.toml\n  $ reelhost up --check    # only say whether the file is right',
  )
    .option('-c, --config <file>', 'the TOML file (REELHOST_CONFIG)')
    .option('--check', 'check the configuration, start nothing')
    .addOption(new Option('--log-level <level>', 'for all parts').choices(['trace', 'debug', 'info', 'warn', 'error']))
    .action(async (options: { config?: string; check?: boolean; logLevel?: string }) => {
      end(await (await import('./up/up.js')).up(options));
    });

  const device = command('device', 'The identity of this computer.', '');
  device
    .command('init')
    .description('Make a device key (Ed25519, PKCS#8 PEM, 0600) and print its public half. Never overwrites.')
    .requiredOption('--out <file>', 'where the private key goes')
    .option('--json', 'one JSON document')
    .addHelpText('after', '\nExamples:\n  $ reelhost device init --out ~/.config/reelhost/device.pem')
    .action(async (options: { out: string; json?: boolean }) => {
      end(await (await import('./device-command.js')).deviceInit(options));
    });

  withPlaces(
    command(
      'status',
      'What this host is doing.',
      '  $ reelhost status\n  $ reelhost status --json\n  $ reelhost status --watch',
    ),
  )
    .option('--json', 'one JSON document (with --watch: one per line)')
    .option('--watch', 'again every second until interrupted')
    .action(async (options: Places & { json?: boolean; watch?: boolean }) => {
      end(await (await import('./status/status.js')).status({ ...options, color: color() }));
    });

  withPlaces(
    command(
      'health',
      'Exit 0 when healthy, 4 when not, 3 when not running: for probes.',
      '  $ reelhost health --ready',
    ),
  )
    .addOption(new Option('--live', 'only: do the daemons answer?').conflicts('ready'))
    .addOption(new Option('--ready', 'also: connected, with an executor (default)'))
    .option('--json', 'one JSON document')
    .action(async (options: Places & { live?: boolean; json?: boolean }) => {
      end(await (await import('./status/health.js')).health(options));
    });

  withPlaces(command('doctor', 'Check whether this computer is ready, and say how to repair what is not.', ''))
    .option('-c, --config <file>', 'the TOML file (REELHOST_CONFIG)')
    .option('--json', 'one JSON document')
    .option('--strict', 'warnings count as failures')
    .action(async (options: Places & { config?: string; json?: boolean; strict?: boolean }) => {
      end(await (await import('./doctor/doctor.js')).doctor({ ...options, color: color() }));
    });

  withPlaces(
    command(
      'pause',
      'Take no new work, until resumed. Survives a restart.',
      '  $ reelhost pause --note "rendering my own film" --for 2h',
    ),
  )
    .option('--note <text>', 'why; shown in status')
    .option('--for <duration>', 'resume by itself after this (90s, 5m, 1h, 2d)', parseDurationMs)
    .option('--json', 'one JSON document')
    .action(async (options: Places & { note?: string; for?: number; json?: boolean }) => {
      end(await (await import('./pause.js')).pause(options));
    });

  withPlaces(command('resume', 'Take work again.', ''))
    .option('--json', 'one JSON document')
    .action(async (options: Places & { json?: boolean }) => {
      end(await (await import('./pause.js')).resume(options));
    });

  withPlaces(command('paths', 'Where configuration, state and socket lie.', ''))
    .option('--json', 'one JSON document')
    .action(async (options: Places & { json?: boolean }) => {
      end(await (await import('./paths-command.js')).paths(options));
    });

  command('version', 'Versions of everything that takes part.', '')
    .option('--json', 'one JSON document')
    .action(async (options: { json?: boolean }) => {
      end(await printVersions(options));
    });

  command('executor', 'Run an executor: "reelhost executor ffmpeg".', '').action(() => {
    throw new CommandError(ExitCode.usage, 'say which executor: reelhost executor ffmpeg [--socket PATH]');
  });
  command('argv', 'Work with ffmpeg argvs: "reelhost argv check".', '').action(() => {
    throw new CommandError(ExitCode.usage, 'say what to do: reelhost argv check [--session DIR] -- ARGV…');
  });
  return program;
}
