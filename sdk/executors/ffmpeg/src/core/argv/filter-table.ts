/**
 * Reads the generated filter tables: which options a filter has, of which type, and which of them a value without a name sets in the
 * versions that count.
 */
import { FILTERS } from './tables/filters.js';

type Option = { name: string; type: string; alias: boolean; place: number | undefined };
/** A filter as the tables know it: option name to type over all versions, and the names a place stands for. */
export type FilterTable = { named: ReadonlyMap<string, string>; byPlace: readonly (readonly string[])[] };

/** Filters that none of the builds in the tables contains: VideoToolbox on macOS. Same notation as in the tables. */
const MORE_FILTERS: Readonly<Record<string, readonly (readonly [number, string | null])[]>> = {
  scale_vt: [[0, 'w:string h:string color_matrix:string color_primaries:string color_transfer:string']],
  transpose_vt: [[0, 'dir:int passthrough:int']],
  yadif_videotoolbox: [[0, 'mode:int parity:int deint:int']],
};

function rowsOf(filter: string): readonly (readonly [number, string | null])[] | undefined {
  if (Object.hasOwn(FILTERS, filter)) return FILTERS[filter];
  return Object.hasOwn(MORE_FILTERS, filter) ? MORE_FILTERS[filter] : undefined;
}

/** Options every filter has. */
export const GENERIC_OPTIONS: ReadonlyMap<string, string> = new Map([
  ['enable', 'string'],
  ['threads', 'int'],
  ['thread_type', 'flags'],
]);

function optionsOf(list: string): Option[] {
  const options: Option[] = [];
  let place = -1;
  let positional = true;
  for (const word of list.split(' ')) {
    if (word === '|') positional = false;
    const at = word.lastIndexOf(':');
    if (at < 0) continue;
    const raw = word.slice(0, at);
    const alias = raw.endsWith('=');
    if (positional && !alias) place++;
    options.push({
      name: alias ? raw.slice(0, -1) : raw,
      type: word.slice(at + 1),
      alias,
      place: positional ? place : undefined,
    });
  }
  return options;
}

/** The filter's options: names over all versions, places for the versions that count; undefined when no version knows the filter. */
export function filterTable(name: string, columns: readonly number[]): FilterTable | undefined {
  const rows = rowsOf(name);
  if (rows === undefined) return undefined;
  const named = new Map<string, string>(GENERIC_OPTIONS);
  for (const [, list] of rows) {
    if (list === null) continue;
    for (const option of optionsOf(list)) {
      const before = named.get(option.name);
      named.set(option.name, before === undefined || isTextType(option.type) ? option.type : before);
    }
  }
  const byPlace: Set<string>[] = [];
  const lists = columns.flatMap((column) => listIn(rows, column) ?? []);
  // A filter the running version lacks makes ffmpeg fail; it is judged by the versions that have it.
  for (const list of lists.length > 0 ? lists : rows.flatMap(([, any]) => any ?? [])) {
    for (const option of optionsOf(list)) {
      if (option.place === undefined || option.alias) continue;
      let names = byPlace[option.place];
      if (names === undefined) {
        names = new Set();
        byPlace[option.place] = names;
      }
      names.add(option.name);
    }
  }
  return { named, byPlace: byPlace.map((names) => [...names]) };
}

/** A filter's option list in one version; undefined when that version lacks the filter. */
function listIn(rows: readonly (readonly [number, string | null])[], column: number): string | undefined {
  return rows.findLast(([since]) => since <= column)?.[1] ?? undefined;
}

/** True for types whose values are text (and so could be names of files). */
export function isTextType(type: string): boolean {
  return /^(string|dictionary|binary)/.test(type);
}

/** True when the filter has the option in every one of these versions. */
export function hasOptionIn(filter: string, option: string, columns: readonly number[]): boolean {
  const rows = rowsOf(filter) ?? [];
  return columns.every((column) => optionsOf(listIn(rows, column) ?? '').some((one) => one.name === option));
}
