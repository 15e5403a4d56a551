/** `reelhost health`: for probes of a service manager or a container. Says it in the exit code: 0, 3 (not running), 4 (not healthy). */
import { ExitCode } from '../exit-codes.js';
import type { PathOptions } from '../paths.js';
import { print, printJson } from '../terminal.js';
import { readHostStatus } from './host-status.js';

/** Troubles that do not matter to `--live`: the daemons answer, they just cannot work now. */
const LIVE = new Set([
  'broker_not_running',
  'broker_stuck',
  'bridge_not_running',
  'bridge_stuck',
  'bridge_status_unreadable',
]);

/** @param options.live only ask whether the daemons answer */
export async function health(options: PathOptions & { live?: boolean; json?: boolean }): Promise<number> {
  const found = await readHostStatus(options);
  const troubles = options.live === true ? found.troubles.filter(({ code }) => LIVE.has(code)) : found.troubles;
  const code =
    found.state === 'not_running' ? ExitCode.notRunning : troubles.length > 0 ? ExitCode.unhealthy : ExitCode.done;
  const mode = options.live === true ? 'live' : 'ready';
  if (options.json === true)
    printJson({ schema: 'reelhost.health/1', probe: mode, ok: code === ExitCode.done, troubles });
  else print(code === ExitCode.done ? 'ok' : troubles.map(({ message }) => message).join('; '));
  return code;
}
