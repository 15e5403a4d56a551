/**
 * `bridge.control.json` is how a person pauses the runner without a port or a signal: `{"schema": "reelhost.bridge-control/1", "paused": true, "note"?, "until"?}`.
 * The file stays, so a pause survives a restart. It is looked at twice a second; watching its folder would wake the bridge with every write of a broker
 * that keeps its journal there. A file that cannot be read changes nothing.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const FILE = 'bridge.control.json';
const POLL_MS = 500;
const NOTE_LENGTH = 200;

/** What the file asks for. */
export type Control = { readonly paused: boolean; readonly note: string | null; readonly until: string | null };

/** Nobody asked for anything. */
export const NOT_PAUSED: Control = { paused: false, note: null, until: null };

/** Follows the file. */
export type ControlFile = { readonly current: () => Control; readonly close: () => void };

/** Reads the file text; null when it is not a control file. A pause whose end has passed is none. */
export function readControl(text: string, wallMs: number): Control | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof value !== 'object' || value === null || !('paused' in value) || typeof value.paused !== 'boolean')
    return null;
  const note = 'note' in value && typeof value.note === 'string' ? value.note.slice(0, NOTE_LENGTH) : null;
  const until = 'until' in value && typeof value.until === 'string' ? value.until : null;
  const isOver = until !== null && Date.parse(until) <= wallMs;
  return value.paused && !isOver ? { paused: true, note, until } : NOT_PAUSED;
}

/** Calls `onChange` for every change, `onBad` once for each unreadable version of the file. */
export function watchControl(stateDir: string, onChange: (control: Control) => void, onBad: () => void): ControlFile {
  const path = join(stateDir, FILE);
  let control = NOT_PAUSED;
  let badText: string | null = null;
  const look = (): void => {
    let text: string | null = null;
    try {
      text = readFileSync(path, 'utf8');
    } catch {
      // Not there: not paused.
    }
    const next = text === null ? NOT_PAUSED : readControl(text, Date.now());
    if (next === null) {
      if (text !== badText) onBad();
      badText = text;
      return;
    }
    badText = null;
    const isSame = next.paused === control.paused && next.note === control.note && next.until === control.until;
    control = next;
    if (!isSame) onChange(control);
  };
  look();
  const timer = setInterval(look, POLL_MS);
  timer.unref();
  return {
    current: () => control,
    close: () => {
      clearInterval(timer);
    },
  };
}
