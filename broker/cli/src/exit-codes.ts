/** The exit codes of every reelhost command. Scripts and service managers depend on them: they never change their meaning. */
export const ExitCode = {
  /** Done, or healthy. */
  done: 0,
  /** Something unexpected; the message says what. */
  unexpected: 1,
  /** The command line is wrong. */
  usage: 2,
  /** The daemon asked about does not run. */
  notRunning: 3,
  /** It runs, but is not healthy or not ready. */
  unhealthy: 4,
  /** Another one runs already: its lock is held. */
  alreadyRunning: 5,
  /** The command waited as long as it was told to. */
  timedOut: 6,
  /** `doctor` found something that must be repaired. */
  doctorFailed: 10,
  /** The gateway cannot be reached (commands that try once; `up` and `bridge` keep trying). */
  gatewayUnreachable: 69,
  /** It may work later. */
  tryAgain: 75,
  /** Not paired, revoked, or another computer uses the same identity. */
  notPaired: 77,
  /** The configuration is wrong. */
  badConfig: 78,
} as const;

/** One of the values of {@link ExitCode}. */
export type ExitCodeValue = (typeof ExitCode)[keyof typeof ExitCode];

/** An end that was foreseen: `main` prints the message, without a stack, and exits with the code. */
export class CommandError extends Error {
  override readonly name = 'CommandError';

  /**
   * @param code the exit code
   * @param message one sentence: what is wrong and what to do about it
   */
  constructor(
    readonly code: ExitCodeValue,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
