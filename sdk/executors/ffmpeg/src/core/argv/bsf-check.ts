/**
 * Bitstream filter chains: `name=key=value:key=value,name2`, quoted as av_get_token does. Names come from the tables; no option of any
 * bitstream filter names a file, so values need only be printable.
 */
import { BSFS } from './tables/names.js';
import { type Cursor, readToken } from './token.js';
import type { Problem } from './verdict.js';

const KNOWN = new Set(BSFS);

/** The problem with a chain of bitstream filters, or undefined. */
export function bsfProblem(value: string): Problem | undefined {
  const cursor: Cursor = { text: value, at: 0 };
  for (;;) {
    const piece = readToken(cursor, ',');
    if (piece.unterminated) return { rule: 'bsf.syntax', message: 'a quote is opened and never closed' };
    const name = piece.value.split('=', 1)[0] ?? '';
    if (!KNOWN.has(name)) return { rule: 'bsf.unknown', message: `the bitstream filter "${name}" is not on the list` };
    if (/[\u0000-\u001f\u007f]/.test(piece.value)) {
      return { rule: 'bsf.value', message: `the options of "${name}" may not hold control characters` };
    }
    if (cursor.at >= value.length) return undefined;
    cursor.at++;
  }
}
