/**
 * Reads what the bridge says of itself. The bridge writes the file on every change and at least every 5 s, so a file that has become old while the
 * process lives tells a stuck bridge, and one whose process is gone tells a bridge that does not run. Never waits for the bridge.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod/mini';

/** Older than this and the bridge is stuck, in milliseconds: three of its write intervals. */
export const STALE_AFTER_MS = 15_000;

const Job = z.looseObject({
  jobId: z.string(),
  jobType: z.string(),
  epoch: z.optional(z.number()),
  sessionId: z.nullish(z.string()),
  leaseLeftMs: z.optional(z.number()),
  op: z.nullish(z.unknown()),
});

const Time = z.union([z.string(), z.number()]);

const BridgeFile = z.looseObject({
  pid: z.number(),
  state: z.string(),
  since: z.optional(Time),
  healthy: z.optional(z.boolean()),
  reason: z.nullish(z.string()),
  gateway: z.nullish(z.string()),
  runnerId: z.nullish(z.string()),
  slots: z.optional(z.number()),
  freeSlots: z.optional(z.number()),
  paused: z.optional(z.boolean()),
  pauseNote: z.nullish(z.string()),
  pausedUntil: z.nullish(Time),
  jobs: z.optional(z.array(Job)),
  lastError: z.nullish(z.unknown()),
  updatedAt: Time,
});

/** One job that the bridge holds. */
export type BridgeJob = z.infer<typeof Job>;

/** What the bridge wrote. */
export type BridgeFileContent = z.infer<typeof BridgeFile>;

/** The file and what its age and process id add. */
export interface BridgeStatus {
  /** The process exists. */
  readonly alive: boolean;
  /** It exists, but has not written for {@link STALE_AFTER_MS}. */
  readonly stuck: boolean;
  readonly paused: boolean;
  readonly ageMs: number | null;
  readonly file: BridgeFileContent | null;
  /** Why the file could not be read, when there is one. */
  readonly unreadable: string | null;
}

/** Reads `bridge.status.json`; a missing or broken file is an answer, not an error. */
export async function readBridgeStatus(stateDir: string, now: number = Date.now()): Promise<BridgeStatus> {
  const nothing = { alive: false, stuck: false, paused: false, ageMs: null, file: null };
  let text: string;
  try {
    text = await readFile(join(stateDir, 'bridge.status.json'), 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { ...nothing, unreadable: code === 'ENOENT' ? null : message };
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { ...nothing, unreadable: 'bridge.status.json is not JSON' };
  }
  const parsed = BridgeFile.safeParse(json);
  if (!parsed.success) return { ...nothing, unreadable: 'bridge.status.json has another form than expected' };
  const file = parsed.data;
  const alive = processExists(file.pid) && file.state !== 'stopped';
  const ageMs = Math.max(0, now - new Date(file.updatedAt).getTime());
  return { alive, stuck: alive && ageMs > STALE_AFTER_MS, paused: file.paused === true, ageMs, file, unreadable: null };
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
