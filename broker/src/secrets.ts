/**
 * Secrets of jobs: in memory only, from the enqueue that brought them to the end of the job. When a job is executed, each string of its arguments
 * that is exactly `reelhost-secret:<name>` is replaced. docs/local-protocol.md, Secrets.
 */
import { putSecrets } from './core/index.js';

/** The secrets of unfinished jobs, by job id. */
export class SecretStore {
  readonly #byJob = new Map<string, Readonly<Record<string, string>>>();

  hold(jobId: string, secrets: Readonly<Record<string, string>>): void {
    this.#byJob.set(jobId, secrets);
  }

  forget(jobId: string): void {
    this.#byJob.delete(jobId);
  }

  /** The arguments with the secrets in their places; a name nobody gave a secret for stays as it is. */
  reveal(jobId: string, args: string): string {
    const secrets = this.#byJob.get(jobId);
    if (secrets === undefined) return args;
    return putSecrets(args, secrets);
  }
}
