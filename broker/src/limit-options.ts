/** Limits on the command line: `--limit NAME=VALUE`, their units, and the table that `--limits` prints. */
import { InvalidArgumentError } from 'commander';
import { LIMIT_KEYS, LIMITS, type LimitKey, type LimitRow, type LimitUnit, limitName } from './core/index.js';

/** Limits somebody has named. */
export type NamedLimits = Partial<Record<LimitKey, number>>;

const SUFFIXES: Readonly<Record<LimitUnit, Readonly<Record<string, number>>>> = {
  bytes: { '': 1, b: 1, kib: 1024, mib: 1_048_576, gib: 1_073_741_824 },
  ms: { '': 1, ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 },
  hours: { '': 1, h: 1, d: 24 },
  MiB: { '': 1, mib: 1, gib: 1024 },
  count: { '': 1 },
};

/** Reads `NAME=VALUE` and adds it. @throws InvalidArgumentError which names the limit and its range */
export function readLimit(text: string, named: NamedLimits): NamedLimits {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('must be NAME=VALUE; --limits shows all names');
  const name = text.slice(0, at);
  const key = LIMIT_KEYS.get(name.replaceAll('-', '_'));
  if (key === undefined) {
    const nearest = nearestName(name);
    const hint = nearest === undefined ? '' : `did you mean ${nearest}? `;
    throw new InvalidArgumentError(`there is no limit ${name}; ${hint}--limits shows all`);
  }
  return { ...named, [key]: readValue(key, text.slice(at + 1)) };
}

/** Reads the value of a limit. @throws InvalidArgumentError which names the limit and its range */
export function readValue(key: LimitKey, text: string): number {
  const { unit, min, max } = LIMITS[key];
  const [, digits, suffix] = /^(\d[\d_]*)\s*([a-z]*)$/i.exec(text.trim()) ?? [];
  const factor = Object.hasOwn(SUFFIXES[unit], suffix?.toLowerCase() ?? '?')
    ? (SUFFIXES[unit][suffix?.toLowerCase() ?? '?'] ?? Number.NaN)
    : Number.NaN;
  const value = Number((digits ?? '').replaceAll('_', '')) * factor;
  if (digits !== undefined && value >= min && value <= max) return value;
  const suffixes = Object.keys(SUFFIXES[unit]).filter((each) => each !== '');
  const units = suffixes.length === 0 ? '' : `, in ${unit} or with ${suffixes.join(', ')}`;
  throw new InvalidArgumentError(`${limitName(key)} must be a whole number in ${min}..${max}${units}`);
}

/** The name that takes the fewest changes, if these leave most of it. */
function nearestName(name: string): string | undefined {
  const wanted = name.toLowerCase().replaceAll('-', '_');
  let best: string | undefined;
  let least = Math.floor(wanted.length / 2) + 1;
  for (const each of LIMIT_KEYS.keys()) {
    const changes = distance(wanted, each);
    if (changes < least) [best, least] = [each, changes];
  }
  return best;
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const kept = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(kept, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The table for `--limits`: name, default, range, unit, what it bounds. */
export function limitsTable(): string {
  const cells = [...LIMIT_KEYS].map(([name, key]) => {
    const { value, min, max, unit, meaning }: LimitRow = LIMITS[key];
    return [name, String(value), `${min}..${max}`, unit === 'count' ? '' : unit, meaning.replaceAll('`', '')];
  });
  const rows = [['limit', 'default', 'range', 'unit', 'bounds'], ...cells];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  return `${lines.join('\n')}\n`;
}
