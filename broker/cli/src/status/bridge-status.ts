/**
 * Reads what the bridge says of itself. The bridge writes the file on every change and at least every 5 s, so a file that has become old while the
 * process lives tells a stuck bridge, and one whose process is gone tells a bridge that does not run. Never waits for the bridge. Read by hand and
 * tolerantly: a schema library would cost more time than all the rest of `reelhost status`.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Older than this and the bridge is stuck, in milliseconds: three of its write intervals. */
export const STALE_AFTER_MS = 15_000;

/** One job that the bridge holds. */
export interface BridgeJob {
  readonly jobId: string;
  readonly jobType: string;
  readonly epoch: number | null;
  readonly sessionId: string | null;
  /** How long the lease is still trusted. */
  readonly leaseLeftMs: number | null;
  /** The op that runs now. */
  readonly op: string | null;
}

/** The file and what its age and process id add. Times are RFC 3339. */
export interface BridgeStatus {
  /** The process exists. */
  readonly alive: boolean;
  /** It exists, but has not written for {@link STALE_AFTER_MS}. */
  readonly stuck: boolean;
  readonly ageMs: number | null;
  /** Why the file could not be read, when there is one. */
  readonly unreadable: string | null;
  readonly pid: number | null;
  readonly state: string | null;
  readonly healthy: boolean;
  readonly since: string | null;
  readonly reason: string | null;
  readonly gateway: string | null;
  readonly runnerId: string | null;
  readonly slots: number | null;
  readonly freeSlots: number | null;
  readonly paused: boolean;
  readonly pauseNote: string | null;
  readonly pausedUntil: string | null;
  readonly jobTypes: readonly string[];
  readonly jobs: readonly BridgeJob[];
  readonly lastError: string | null;
}

type Fields = Readonly<Record<string, unknown>>;

/** Reads `bridge.status.json`; a missing or broken file is an answer, not an error. */
export async function readBridgeStatus(stateDir: string, now: number = Date.now()): Promise<BridgeStatus> {
  let file: Fields = {};
  let unreadable: string | null = null;
  try {
    const json: unknown = JSON.parse(await readFile(join(stateDir, 'bridge.status.json'), 'utf8'));
    if (isFields(json)) file = json;
    else unreadable = 'bridge.status.json has another form than expected';
  } catch (error) {
    if (error instanceof SyntaxError) unreadable = 'bridge.status.json is not JSON';
    else if ((error as NodeJS.ErrnoException).code !== 'ENOENT') unreadable = (error as Error).message;
  }
  const pid = number(file['pid']);
  const state = text(file['state']);
  const alive = pid !== null && state !== 'stopped' && processExists(pid);
  const updatedAt = Date.parse(text(file['updatedAt']) ?? '');
  const ageMs = Number.isNaN(updatedAt) ? null : Math.max(0, now - updatedAt);
  const stuck = alive && (ageMs ?? Number.POSITIVE_INFINITY) > STALE_AFTER_MS;
  return {
    alive,
    stuck,
    ageMs,
    unreadable,
    pid,
    state,
    healthy: alive && !stuck && (file['healthy'] === true || (file['healthy'] === undefined && state === 'connected')),
    since: text(file['since']),
    reason: text(file['reason']),
    gateway: text(file['gateway']),
    runnerId: text(file['runnerId']),
    slots: number(file['slots']),
    freeSlots: number(file['freeSlots']),
    paused: file['paused'] === true,
    pauseNote: text(file['pauseNote']),
    pausedUntil: text(file['pausedUntil']),
    jobTypes: list(file['jobTypes']).filter((type): type is string => typeof type === 'string'),
    jobs: list(file['jobs']).filter(isFields).map(readJob),
    lastError: isFields(file['lastError']) ? text(file['lastError']['message']) : text(file['lastError']),
  };
}

function readJob(job: Fields): BridgeJob {
  return {
    jobId: text(job['jobId']) ?? '',
    jobType: text(job['jobType']) ?? '',
    epoch: number(job['epoch']),
    sessionId: text(job['sessionId']),
    leaseLeftMs: number(job['leaseLeftMs']),
    op: text(job['op']),
  };
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

function number(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Whether a process of that id exists, whoever owns it. */
export function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
