/**
 * `reelhost pause` and `resume`. The wish is a file in the state directory, so it can be said while the bridge is down and survives restarts;
 * the bridge watches the file, takes no new work, and shows the note in its status.
 */
import { randomUUID } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makePrivateFolder } from '@reelhost/log/private-folder';
import { formatDuration } from './duration.js';
import { CommandError, ExitCode } from './exit-codes.js';
import { hostPaths, type PathOptions } from './paths.js';
import { readBridgeStatus } from './status/bridge-status.js';
import { print, printJson } from './terminal.js';

/** The content of `bridge.control.json`. */
export interface BridgeControl {
  readonly schema: 'reelhost.bridge-control/1';
  readonly paused: boolean;
  readonly note?: string;
  /** RFC 3339 UTC; resumed by itself after it. */
  readonly until?: string;
  readonly requestedAt: string;
}

/** Longest note that the bridge keeps, in characters. */
const MAX_NOTE_CHARS = 200;
const HEARD_WITHIN_MS = 5_000;
const LOOK_EVERY_MS = 100;

/** Asks the bridge to take no new work. */
export async function pause(options: PathOptions & { note?: string; for?: number; json?: boolean }): Promise<number> {
  if (options.note !== undefined && options.note.length > MAX_NOTE_CHARS) {
    throw new CommandError(
      ExitCode.usage,
      `--note may have ${MAX_NOTE_CHARS} characters; this one has ${options.note.length}`,
    );
  }
  const until = options.for === undefined ? undefined : new Date(Date.now() + options.for).toISOString();
  const heard = await ask(options, {
    paused: true,
    ...(options.note !== undefined && { note: options.note }),
    ...(until !== undefined && { until }),
  });
  const how = options.for === undefined ? 'until "reelhost resume"' : `for ${formatDuration(options.for)}`;
  return answer(options, { paused: true, heard, until: until ?? null }, `paused ${how}`);
}

/** Takes the wish back. */
export async function resume(options: PathOptions & { json?: boolean }): Promise<number> {
  const heard = await ask(options, { paused: false });
  return answer(options, { paused: false, heard, until: null }, 'resumed');
}

/** What the bridge said to it. `silent`: it runs, but has not said so in time. */
type Heard = 'yes' | 'not-running' | 'silent';

function answer(
  options: { json?: boolean },
  said: { paused: boolean; heard: Heard; until: string | null },
  text: string,
): number {
  const because = {
    yes: '',
    'not-running': '; the bridge does not run, and will know when it starts',
    silent: '; the bridge runs but has not confirmed it: see "reelhost status"',
  }[said.heard];
  if (options.json === true) printJson({ schema: 'reelhost.pause/1', ...said });
  else print(`${text}${because}`);
  return said.heard === 'silent' ? ExitCode.unhealthy : ExitCode.done;
}

async function ask(options: PathOptions, wish: Pick<BridgeControl, 'paused' | 'note' | 'until'>): Promise<Heard> {
  const { stateDir } = hostPaths(options);
  const control: BridgeControl = {
    schema: 'reelhost.bridge-control/1',
    ...wish,
    requestedAt: new Date().toISOString(),
  };
  makePrivateFolder(stateDir);
  const file = join(stateDir, 'bridge.control.json');
  const partial = `${file}.${randomUUID()}.part`;
  await writeFile(partial, JSON.stringify(control), { mode: 0o600 });
  await rename(partial, file);
  return bridgeHeard(stateDir, wish.paused);
}

/** Waits for the bridge's own word. */
async function bridgeHeard(stateDir: string, paused: boolean): Promise<Heard> {
  const until = Date.now() + HEARD_WITHIN_MS;
  for (;;) {
    const status = await readBridgeStatus(stateDir);
    if (!status.alive) return 'not-running';
    if (status.paused === paused) return 'yes';
    if (Date.now() >= until) return 'silent';
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}
