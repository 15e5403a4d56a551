/** `reelhost status`: the picture of the host for a person or a program. Exit code 0 healthy, 3 not running, 4 otherwise. */
import { setTimeout as wait } from 'node:timers/promises';
import { formatDuration } from '../duration.js';
import { ExitCode } from '../exit-codes.js';
import type { PathOptions } from '../paths.js';
import { type Colors, canRedraw, colorsFor, print, printJson } from '../terminal.js';
import type { ExecutorStatus } from './broker-status.js';
import { type HostStatus, readHostStatus } from './host-status.js';

const WATCH_EVERY_MS = 1_000;

/** Prints the status, once or again and again. */
export async function status(
  options: PathOptions & { json?: boolean; watch?: boolean; color: boolean | undefined },
): Promise<number> {
  const colors = colorsFor(process.stdout, options.color);
  if (options.watch !== true) {
    const found = await readHostStatus(options);
    if (options.json === true) printJson(found);
    else print(describe(found, colors));
    return exitCodeOf(found);
  }
  const interrupted = new AbortController();
  process.once('SIGINT', () => interrupted.abort()).once('SIGTERM', () => interrupted.abort());
  const redraw = canRedraw(process.stdout) && options.json !== true;
  for (;;) {
    const found = await readHostStatus(options);
    if (options.json === true) print(JSON.stringify(found));
    else print(redraw ? `\x1b[2J\x1b[H${describe(found, colors)}` : summary(found));
    await wait(WATCH_EVERY_MS, undefined, { signal: interrupted.signal }).catch(() => undefined);
    if (interrupted.signal.aborted) return ExitCode.done;
  }
}

/** The exit code that says the same. */
export function exitCodeOf({ state }: HostStatus): number {
  switch (state) {
    case 'healthy':
      return ExitCode.done;
    case 'unhealthy':
      return ExitCode.unhealthy;
    case 'not_running':
      return ExitCode.notRunning;
  }
}

/** One line, for a log. */
function summary({ at, state, bridge, broker }: HostStatus): string {
  const jobs = bridge.jobs.map((job) => `${job.jobType}${job.op === null ? '' : `:${job.op}`}`).join(' ');
  return `${at} ${state} bridge=${bridge.alive ? (bridge.state ?? '?') : 'not running'} executors=${broker.executors.length} slots=${bridge.freeSlots ?? 0}/${bridge.slots ?? 0} ${jobs}`.trimEnd();
}

function describe(found: HostStatus, colors: Colors): string {
  const { broker, bridge, up } = found;
  const word = {
    healthy: colors.green('healthy'),
    unhealthy: colors.yellow('unhealthy'),
    not_running: colors.red('not running'),
  };
  const lines = [`reelhost is ${word[found.state]}`];
  for (const { message, fix } of found.troubles) {
    lines.push(`  ${colors.yellow('!')} ${message}`);
    if (fix !== null) lines.push(`    ${colors.dim(fix)}`);
  }
  if (bridge.alive) {
    const since = bridge.since === null ? '' : ` for ${formatDuration(Date.now() - Date.parse(bridge.since))}`;
    lines.push(
      '',
      `${colors.bold('bridge')}    ${bridge.state}${since}, ${bridge.freeSlots} of ${bridge.slots} slots free`,
    );
    if (bridge.gateway !== null)
      lines.push(`          ${bridge.gateway}${bridge.runnerId === null ? '' : ` as ${bridge.runnerId}`}`);
    if (bridge.paused) {
      const until = bridge.pausedUntil === null ? '' : ` until ${bridge.pausedUntil}`;
      lines.push(`          paused${until}${bridge.pauseNote === null ? '' : `: ${bridge.pauseNote}`}`);
    }
    for (const job of bridge.jobs) {
      const lease = job.leaseLeftMs === null ? '' : `, lease ${formatDuration(job.leaseLeftMs)}`;
      lines.push(`  job     ${job.jobType} ${job.jobId}${job.op === null ? ', idle' : `, ${job.op}`}${lease}`);
    }
    if (bridge.lastError !== null && !bridge.healthy) lines.push(`  last error: ${bridge.lastError}`);
  }
  if (broker.answers) {
    const stats = broker.stats ?? {};
    const uptime = typeof stats['uptime_ms'] === 'number' ? ` for ${formatDuration(stats['uptime_ms'])}` : '';
    lines.push(
      '',
      `${colors.bold('broker')}    running${uptime}, ${String(stats['sessions_open'] ?? 0)} sessions, ${String(stats['in_flight'] ?? 0)} executions`,
    );
  }
  for (const executor of broker.executors) {
    const tasks = Object.keys(executor.tasks).join(', ');
    lines.push(
      `${colors.bold('executor')}  ${executor.software ?? executor.runtimeId}, ${executor.inFlight} of ${executor.maxConcurrency} busy`,
    );
    lines.push(`          ${colors.dim(tasks)}`);
    for (const sandbox of sandboxesOf(executor)) lines.push(`          sandbox: ${sandbox}`);
  }
  if (up?.alive === true) {
    const restarts = up.parts.filter((part) => part.restarts > 0).map((part) => `${part.name} ${part.restarts}×`);
    lines.push(
      '',
      `${colors.bold('up')}        process ${up.pid}${restarts.length === 0 ? '' : `, restarted: ${restarts.join(', ')}`}`,
    );
  }
  lines.push('', colors.dim(`state ${found.stateDir}, socket ${found.socket}`));
  return lines.join('\n');
}

/** What confines the work of an executor, in its own words; nothing for one that does not say. */
function sandboxesOf({ tasks }: ExecutorStatus): string[] {
  const said = Object.values(tasks).flatMap((task) => {
    const attributes = fields(fields(task)['attributes']);
    const sandbox = attributes['sandbox'];
    if (typeof sandbox !== 'string') return [];
    const network = attributes['sandboxNetwork'];
    if (sandbox === 'none') return ['none, ffmpeg runs unconfined'];
    return [typeof network === 'string' ? `${sandbox}, network ${network}` : sandbox];
  });
  return [...new Set(said)];
}

function fields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
