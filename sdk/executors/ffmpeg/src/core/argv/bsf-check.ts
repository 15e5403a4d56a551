/**
 * Bitstream filter chains: `name=key=value:key=value,name2`. Names from the tables; values are numbers, names or hexadecimal text.
 */
import { BSFS } from './tables/names.js';
import type { Problem } from './verdict.js';

const KNOWN = new Set(BSFS);

/** The problem with a chain of bitstream filters, or undefined. */
export function bsfProblem(value: string): Problem | undefined {
  if (/['"\\\n]/.test(value))
    return { rule: 'bsf.syntax', message: 'quotes, backslashes and line breaks are not allowed in bitstream filters' };
  for (const piece of value.split(',')) {
    const equals = piece.indexOf('=');
    const name = equals < 0 ? piece : piece.slice(0, equals);
    if (!KNOWN.has(name)) return { rule: 'bsf.unknown', message: `the bitstream filter "${name}" is not on the list` };
    if (equals >= 0 && !/^[\w.+\-*()|:=% /]*$/.test(piece.slice(equals + 1)))
      return { rule: 'bsf.value', message: `the options of "${name}" may hold letters, digits and . + - * ( ) | only` };
  }
  return undefined;
}
