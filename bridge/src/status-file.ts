/** Writes `bridge.status.json`: whole or not at all, 0600, soon after every change that shows and at least every few seconds, so that its age shows a stuck bridge. */
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { redactLine } from '@reelhost/protocol';
import type { StatusView } from './core/index.js';

/** Changes within this time make one write. */
const SETTLE_MS = 100;
/** The file is written at least this often. */
const REFRESH_MS = 5_000;

/** What the file holds besides the view of the core. */
export type StatusFacts = {
  readonly gateway: string;
  readonly name: string;
  readonly kind: 'device' | 'pool';
  readonly version: string;
};

/** Keeps the file up to date. */
export type StatusFile = { readonly changed: () => void; readonly close: () => void };

/** Starts to write; `view` is asked when it is time, `note` tells the pause note and its end. */
export function openStatusFile(
  stateDir: string,
  facts: StatusFacts,
  view: () => StatusView,
  note: () => { readonly pauseNote: string | null; readonly pausedUntil: string | null },
): StatusFile {
  const path = join(stateDir, 'bridge.status.json');
  let since = new Date();
  let last = '';
  let shown = '';
  let lastError: { message: string; at: string } | null = null;
  let soon: NodeJS.Timeout | null = null;
  /** Everything a reader would notice; leases run down by themselves. */
  const appearanceOf = (now: StatusView): string =>
    JSON.stringify([now, note()], (key, value) => (key === 'leaseLeftMs' ? undefined : value));
  const write = (): void => {
    const now = new Date();
    const current = view();
    shown = appearanceOf(current);
    const { reason, ...rest } = current;
    if (rest.state !== last) since = now;
    if (reason !== null && !rest.healthy) lastError = { message: reason, at: now.toISOString() };
    last = rest.state;
    const status = {
      schema: 'reelhost.bridge-status/1',
      pid: process.pid,
      ...facts,
      ...rest,
      since: since.toISOString(),
      ...(reason === null ? {} : { reason }),
      ...note(),
      ...(lastError === null ? {} : { lastError }),
      updatedAt: now.toISOString(),
    };
    try {
      writeFileSync(`${path}.${process.pid}`, `${redactLine(JSON.stringify(status))}\n`, { mode: 0o600 });
      renameSync(`${path}.${process.pid}`, path);
    } catch {
      // A full disk: the age of the old file tells.
      rmSync(`${path}.${process.pid}`, { force: true });
    }
  };
  const timer = setInterval(write, REFRESH_MS);
  timer.unref();
  write();
  return {
    changed: () => {
      soon ??= setTimeout(() => {
        soon = null;
        if (appearanceOf(view()) !== shown) write();
      }, SETTLE_MS);
      soon.unref();
    },
    close: () => {
      clearInterval(timer);
      if (soon !== null) clearTimeout(soon);
      write();
    },
  };
}
