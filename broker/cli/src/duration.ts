/** Durations as people write them on a command line and in a configuration. */
import { InvalidArgumentError } from 'commander';

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** "90s", "5m", "1h", "2d", "250ms" in milliseconds. @throws InvalidArgumentError saying which forms are understood */
export function parseDurationMs(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim());
  const unit = UNIT_MS[match?.[2] ?? ''];
  const value = Number(match?.[1]) * (unit ?? Number.NaN);
  if (!Number.isFinite(value) || value <= 0) throw new InvalidArgumentError('Write it like 90s, 5m, 1h or 2d.');
  return Math.round(value);
}

/** How long something took or is ago, in at most two units: "3 h 12 min", "48 s", "0.4 s". */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${(Math.max(0, ms) / 1_000).toFixed(1)} s`;
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
