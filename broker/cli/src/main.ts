/**
 * The command line: finds the command, loads its module on first use, and turns every end into an exit code. What a daemon's command line means
 * is the daemon's to say (see handover.ts); everything else is declared in commands.ts.
 */
import { CommandError, ExitCode } from './exit-codes.js';

/** Runs one command line (without node and script) and answers the exit code. Never throws for a foreseen end. */
export async function main(argv: string[]): Promise<number> {
  quietWhenTheReaderLeaves();
  try {
    const daemon = await asDaemon(argv);
    if (daemon !== undefined) return daemon;
    const { runCommand } = await import('./commands.js');
    return await runCommand(argv);
  } catch (error) {
    return report(error, argv);
  }
}

/** The commands whose arguments are handed over unread; undefined when this is none of them. */
async function asDaemon(argv: string[]): Promise<number | undefined> {
  const [command, second, ...rest] = argv;
  const isFlag = second === undefined || second.startsWith('-');
  if (command === 'broker') return (await import('./handover.js')).runBroker(argv.slice(1));
  if (command === 'bridge') return (await import('./handover.js')).runBridge(argv.slice(1));
  if (command === 'executor' && !isFlag) return (await import('./handover.js')).runExecutor(second, rest);
  if (command === 'argv' && second === 'check') return (await import('./handover.js')).runArgvCheck(rest);
  return undefined;
}

function report(error: unknown, argv: readonly string[]): number {
  const foreseen = error instanceof CommandError;
  const code = foreseen ? error.code : ExitCode.unexpected;
  const message = error instanceof Error ? error.message : String(error);
  const ownFlags = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv;
  if (ownFlags.includes('--json')) {
    process.stdout.write(`${JSON.stringify({ schema: 'reelhost.error/1', exitCode: code, message })}\n`);
  }
  process.stderr.write(`reelhost: ${message}\n`);
  if (!foreseen && error instanceof Error && process.env['REELHOST_DEBUG'] === '1') {
    process.stderr.write(`${error.stack ?? ''}\n`);
  }
  return code;
}

/** `reelhost status | head -1` is no error. */
function quietWhenTheReaderLeaves(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(ExitCode.done);
    process.stderr.write(`reelhost: cannot write the answer: ${error.message}\n`);
    process.exit(ExitCode.unexpected);
  });
}
