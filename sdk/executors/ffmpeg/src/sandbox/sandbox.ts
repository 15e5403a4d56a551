/**
 * The layer behind the validator: what a child may see of the host at all.
 *
 * A sandbox is chosen once, at start, by a self-test that must fail to read a canary outside the session and to reach a listener of this computer
 * (select.ts). `none` runs the program directly.
 */

/** Which mechanism is in force; reported to operators and to the gateway as it is. */
export type SandboxName = 'bubblewrap' | 'landlock' | 'sandbox-exec' | 'none';

/** A program as the op wants it run. Paths are absolute and resolved. */
export interface SandboxCommand {
  program: string;
  argv: readonly string[];
  /** Readable and writable, and the working directory. */
  sessionDir: string;
  environment: Readonly<Record<string, string>>;
}

/** The same, as it must be spawned (with `sessionDir` as the working directory). */
export interface WrappedCommand {
  program: string;
  argv: readonly string[];
  environment: Readonly<Record<string, string>>;
}

/** One mechanism, ready to use. */
export interface Sandbox {
  readonly name: SandboxName;
  /** Whether a child is kept from every network, this computer's own included; reported as it is, and proven by the self-test. */
  readonly network: 'closed' | 'open';
  wrap(command: SandboxCommand): WrappedCommand;
  /** How the session directory may be called in the child's output: all of these become relative paths. */
  roots(sessionDir: string): string[];
}

/** What every mechanism must leave readable, besides the program and the system's libraries. */
export interface ReadableParts {
  /** Folders and files: fonts and their configuration. */
  paths: readonly string[];
}

/** No sandbox: only the validator, the rebuilt argv and the built environment protect the host. */
export const noSandbox: Sandbox = {
  name: 'none',
  network: 'open',
  wrap: ({ program, argv, environment }) => ({ program, argv, environment }),
  roots: (sessionDir) => [sessionDir],
};
