/** Patterns for the names a template stands for: numbered pictures, globs, and what muxers make of `%d`, `%v` and `$Number$`. */
import { foldedPath } from './path-rules.js';
import type { Problem } from './verdict.js';

/** The text as a pattern that matches nothing else. */
export function literalPattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
}

/** Matches the names `%d`/`%0Nd` stands for; undefined when there is not exactly one of it or another `%`. */
export function numberPattern(name: string): RegExp | undefined {
  const parts = name.replaceAll('%%', '\0').split(/%(?:0?\d{1,2})?d/);
  if (parts.length !== 2 || parts.some((part) => part.includes('%'))) return undefined;
  return new RegExp(`^${parts.map((part) => literalPattern(part.replaceAll('\0', '%'))).join('-?\\d+')}$`);
}

/** Matches the names a glob of `*` and `?` stands for. */
export function globPattern(name: string): RegExp {
  return new RegExp(
    `^(?!\\.)${[...name].map((c) => (c === '*' ? '.*' : c === '?' ? '.' : literalPattern(c))).join('')}$`,
    'u',
  );
}

/**
 * Pattern over folded session paths for an output template, or why the template is not one. `letters` are the conversions allowed
 * besides the number (`%v` for variants).
 */
export function outputPattern(
  path: string,
  letters: string,
): { ok: true; pattern: RegExp | undefined } | { ok: false; problem: Problem } {
  const conversions = [...path.replaceAll('%%', '').matchAll(/%(?:0?\d{0,2})([A-Za-z])?/g)];
  for (const one of conversions) {
    const letter = one[1] ?? '';
    if (letter !== 'd' && !(letter !== '' && letters.includes(letter))) {
      return {
        ok: false,
        problem: { rule: 'pattern.output', message: `"${one[0]}" is not allowed in an output name; use %d or %0Nd` },
      };
    }
  }
  const numbers = conversions.filter((one) => one[1] === 'd');
  if (numbers.length > 1)
    return { ok: false, problem: { rule: 'pattern.output', message: 'an output name may hold one number pattern' } };
  if (conversions.length === 0) return { ok: true, pattern: undefined };
  const folded = foldedPath(path).replaceAll('%%', '\0');
  const source = folded
    .split(/(%(?:0?\d{0,2})[a-z])/)
    .map((part) =>
      part.startsWith('%') ? (part.endsWith('d') ? '-?\\d+' : '[^/]+') : literalPattern(part.replaceAll('\0', '%')),
    )
    .join('');
  return { ok: true, pattern: new RegExp(`^${source}$`) };
}

/** Whether a muxer may fill something in: `%d`, `%v`, `$Number$`. */
export function isTemplate(part: string): boolean {
  return /[%$]/.test(part);
}

/** A folded name as a pattern: `%v`, `%d` and `$Number$` stand for anything but a slash. */
export function templateSource(text: string): string {
  return text
    .split(/(\$[a-z]+(?:%0?\d*[a-z])?\$|%0?\d*[a-z])/)
    .map((part, at) => (at % 2 === 1 ? '[^/]*' : literalPattern(part)))
    .join('');
}
