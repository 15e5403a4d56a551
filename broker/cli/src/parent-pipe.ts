/**
 * A child of `reelhost up` must not outlive it, even when `up` is killed with -9 and cannot say goodbye. `up` gives each child a pipe as
 * standard input and never writes to it; its end means that `up` is gone. Then this process stops as on SIGTERM, and is ended after a while
 * in any case.
 */

/** Set in the environment of a child whose standard input is such a pipe. */
export const PARENT_PIPE_VARIABLE = 'REELHOST_PARENT_PIPE';

/** How long a child may take to stop after its parent is gone, in milliseconds. */
const STOP_WITHIN_MS = 15_000;

/** Starts watching when the environment asks for it. The watch keeps nothing alive by itself. */
export function watchParentPipe(env: NodeJS.ProcessEnv = process.env): void {
  if (env[PARENT_PIPE_VARIABLE] !== '1') return;
  delete env[PARENT_PIPE_VARIABLE];
  const parentGone = (): void => {
    setTimeout(() => process.exit(1), STOP_WITHIN_MS).unref();
    process.kill(process.pid, 'SIGTERM');
  };
  process.stdin.once('end', parentGone).once('error', parentGone).resume();
  // The type of stdin does not know that a pipe is a socket with unref().
  (process.stdin as unknown as { unref?: () => void }).unref?.();
}
