/**
 * Splits a filtergraph as libavfilter does (first level of quoting: link labels, filter name and instance, the argument string) and
 * each argument string into named and positional values (second level). Decides nothing about what a filter may do.
 */

import { type Cursor, type Pair, readPairs, readToken, skipBlanks } from './token.js';
import type { Problem } from './verdict.js';

/** One filter as it stands in the graph. `argsEnd` is where its raw argument text ends, so that something can be appended there. */
export type GraphFilter = {
  name: string;
  args: Pair[];
  hasArgs: boolean;
  /** The argument string as the filter gets it: after the first level of quoting. */
  argsText: string;
  /** Offset in the graph text behind the filter's name (no arguments) or behind its last argument character. */
  argsEnd: number;
};

/** A parsed graph, or why it cannot be one. */
export type Graph = { ok: true; filters: GraphFilter[]; labels: string[] } | { ok: false; problem: Problem };

/** Longest filtergraph text in characters. */
export const MAX_GRAPH_CHARACTERS = 65_536;
/** Most filters in one graph. */
export const MAX_GRAPH_FILTERS = 2_000;

const syntax = (message: string): Graph => ({ ok: false, problem: { rule: 'graph.syntax', message } });

/** Parses one filtergraph text. */
export function parseGraph(text: string): Graph {
  if (text.length > MAX_GRAPH_CHARACTERS)
    return syntax(`a filtergraph may have ${MAX_GRAPH_CHARACTERS} characters, this one has ${text.length}`);
  const cursor: Cursor = { text, at: 0 };
  const filters: GraphFilter[] = [];
  const labels: string[] = [];
  skipBlanks(cursor);
  const flags = /^sws_flags=([^;]*);/.exec(text.slice(cursor.at));
  if (flags !== null) {
    if (!/^(flags=)?[a-z0-9_+-]+$/.test(flags[1] ?? ''))
      return syntax('sws_flags= at the head of a graph takes scaler flag names only, joined by "+"');
    cursor.at += flags[0].length;
  } else if (text.startsWith('sws_flags=', cursor.at)) {
    return syntax('sws_flags= at the head of a graph must end with ";"');
  }
  for (;;) {
    skipBlanks(cursor);
    const before = readLabels(cursor);
    if (before === undefined) return syntax('a link label needs a name and a closing "]"');
    labels.push(...before);
    const name = readToken(cursor, '=,;[');
    if (name.unterminated) return syntax('a quote is opened and never closed');
    if (name.value === '') return syntax('a filter name is missing');
    let args: Pair[] = [];
    let argsText = '';
    const hasArgs = text.charAt(cursor.at) === '=';
    if (hasArgs) {
      cursor.at++;
      const raw = readToken(cursor, '[],;');
      if (raw.unterminated) return syntax('a quote is opened and never closed');
      if (cursor.at >= text.length && /(^|[^\\])(\\\\)*\\$/.test(text))
        return syntax('the graph ends with a lone backslash');
      argsText = raw.value;
      args = readPairs(argsText, ':');
      if (args.some((pair) => pair.unterminated))
        return syntax('a quote inside the arguments of a filter is opened and never closed');
    }
    const argsEnd = cursor.at;
    const after = readLabels(cursor);
    if (after === undefined) return syntax('a link label needs a name and a closing "]"');
    labels.push(...after);
    const instance = name.value.indexOf('@');
    filters.push({ name: instance < 0 ? name.value : name.value.slice(0, instance), args, hasArgs, argsText, argsEnd });
    if (filters.length > MAX_GRAPH_FILTERS) return syntax(`a filtergraph may have ${MAX_GRAPH_FILTERS} filters`);
    skipBlanks(cursor);
    if (cursor.at >= text.length) return { ok: true, filters, labels };
    const next = text.charAt(cursor.at++);
    if (next !== ',' && next !== ';') return syntax(`"${next}" stands where "," or ";" is expected`);
    skipBlanks(cursor);
    if (cursor.at >= text.length)
      return next === ';' ? { ok: true, filters, labels } : syntax('the graph ends with ","');
  }
}

/** Labels `[a][b]` at the cursor; undefined when one has no name or no end. */
function readLabels(cursor: Cursor): string[] | undefined {
  const labels: string[] = [];
  skipBlanks(cursor);
  while (cursor.text.charAt(cursor.at) === '[') {
    cursor.at++;
    const label = readToken(cursor, ']');
    if (label.unterminated || label.value === '' || cursor.text.charAt(cursor.at) !== ']') return undefined;
    cursor.at++;
    labels.push(label.value);
    skipBlanks(cursor);
  }
  return labels;
}
