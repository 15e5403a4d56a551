/**
 * Judges what stands behind -i: a file, a picture sequence, a concat list with everything it names, or a filtergraph.
 */
import { decodeUtf8, MAX_LIST_BYTES, parseConcatList } from './concat-list.js';
import { checkGraph } from './filter-check.js';
import type { InputKind } from './format-policy.js';
import type { OptionContext } from './option-check.js';
import { extensionOf, normalPath, parentOf, pathProblem } from './path-rules.js';
import { playlistProblem, SCRIPT_EXTENSIONS } from './sniff.js';
import type { Problem } from './verdict.js';

/** How the input is opened. `glob`: argv set -pattern_type glob. */
export type InputUse = { kind: InputKind; demuxer: string | undefined; glob: boolean };

/** The name to run with (for a filtergraph: the checked text), or what is wrong. */
export type InputVerdict = { ok: true; name: string } | { ok: false; problem: Problem };

const no = (rule: string, message: string): InputVerdict => ({ ok: false, problem: { rule, message } });

/** Judges an input. */
export function inputProblem(name: string, use: InputUse, context: OptionContext): InputVerdict {
  if (use.kind === 'lavfi') {
    const graph = checkGraph(name, context);
    if (!graph.ok) return graph;
    context.stdout ||= graph.stdout;
    return { ok: true, name: graph.text };
  }
  if (name === '-') return no('path.stdin', 'standard input is not connected; name a file of the session');
  const problem = pathProblem(name);
  if (problem !== undefined) return { ok: false, problem };
  if (/%[*?[\]{}]/.test(name))
    return no('pattern.glob', '"%" followed by a glob character is not allowed in an input name');
  const { paths } = context;
  if (SCRIPT_EXTENSIONS.has(extensionOf(name)))
    return { ok: false, problem: playlistProblem(name, 'a script or drawing') };
  if (use.kind === 'concat') return checkList(name, context);
  const forced = use.demuxer === 'image2' || (use.demuxer ?? '').endsWith('_pipe');
  if (use.glob) {
    if (/[*?]/.test(name)) return verdict(paths.sequence(name, true), name);
    if (/[[\]{}]/.test(name)) return no('pattern.glob', 'only "*" and "?" are allowed in a glob pattern');
  }
  if (
    name.includes('%') &&
    (use.demuxer === 'image2' || (!forced && use.demuxer === undefined && paths.looksLikeSequence(name)))
  )
    return verdict(paths.sequence(name, false), name);
  return verdict(paths.input(name, use.kind === 'raw' ? 'data' : 'media'), name);
}

function verdict(problem: Problem | undefined, name: string): InputVerdict {
  return problem === undefined ? { ok: true, name } : { ok: false, problem };
}

function checkList(name: string, context: OptionContext): InputVerdict {
  const content = context.paths.content(name, MAX_LIST_BYTES);
  if (!content.ok) return content;
  const list = parseConcatList(decodeUtf8(content.bytes));
  if (!list.ok)
    return { ok: false, problem: { rule: list.problem.rule, message: `"${name}", ${list.problem.message}` } };
  const folder = parentOf(normalPath(name));
  for (const entry of list.files) {
    const problem = pathProblem(entry.name) ?? entryProblem(entry.name, folder, context);
    if (problem !== undefined)
      return no(problem.rule, `"${name}", line ${entry.line} of the list, file "${entry.name}": ${problem.message}`);
  }
  return { ok: true, name };
}

function entryProblem(entry: string, folder: string, context: OptionContext): Problem | undefined {
  const path = folder === '' ? entry : `${folder}/${entry}`;
  if (entry.includes('%') && context.paths.looksLikeSequence(entry))
    return { rule: 'pattern.folder', message: 'picture sequences are not allowed inside a list' };
  if (/%[*?[\]{}]/.test(entry))
    return { rule: 'pattern.glob', message: '"%" followed by a glob character is not allowed' };
  return context.paths.input(path, 'media');
}
