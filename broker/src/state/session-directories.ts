/** The directories of sessions: `<state>/sessions/<id>`, mode 0700. Made when a session is opened, removed when it is closed, orphans swept at start. */
import { chmodSync, readdirSync, realpathSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makePrivateFolder } from '@reelhost/log/private-folder';

/** All session directories of one state directory. */
export class SessionDirectories {
  readonly #root: string;
  readonly #trash: string;

  constructor(stateDirectory: string) {
    makePrivateFolder(join(stateDirectory, 'sessions'));
    this.#root = realpathSync(join(stateDirectory, 'sessions'));
    chmodSync(this.#root, 0o700);
    this.#trash = join(realpathSync(stateDirectory), 'sessions-removed');
  }

  pathOf(sessionId: string): string {
    return join(this.#root, sessionId);
  }

  /** Makes a directory; one that is there already is kept. @throws the error of the file system. */
  make(sessionId: string): void {
    const path = this.pathOf(sessionId);
    makePrivateFolder(path);
    chmodSync(path, 0o700);
  }

  /** Removes a directory with all that is in it. What cannot be removed stays for the next sweep. */
  async remove(sessionId: string): Promise<void> {
    await rm(this.pathOf(sessionId), { recursive: true, force: true, maxRetries: 3, retryDelay: 100 });
  }

  /**
   * Moves every directory whose session is not alive out of the way, at once, so that no new session can meet an old one's files;
   * `done` removes them and may take as long as it takes.
   */
  sweep(
    isAlive: (sessionId: string) => boolean,
    stamp: string,
  ): { readonly directories: number; readonly done: Promise<void> } {
    const orphans = readdirSync(this.#root).filter((name) => !isAlive(name));
    if (orphans.length > 0) makePrivateFolder(join(this.#trash, stamp));
    for (const name of orphans) renameSync(join(this.#root, name), join(this.#trash, stamp, name));
    const done = rm(this.#trash, { recursive: true, force: true }).catch(() => undefined);
    return { directories: orphans.length, done };
  }
}
