/** Whether two JSON texts say the same: order of keys, blanks and spelling aside. Integers are exact; 1 and 1.0 differ, as they do for Tay. */

/** Numbers outside strings become strings of their own, so that parsing keeps all their digits. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

function tagged(text: string): unknown {
  return JSON.parse(
    text.replace(TOKEN, (token) => (token.startsWith('"') ? `"s${token.slice(1)}` : `"n${numberText(token)}"`)),
  );
}

/** One spelling for each number: integers keep their digits, the others become the shortest text of their double. */
function numberText(token: string): string {
  if (!/[.eE]/.test(token)) return token === '-0' ? '0' : token;
  const value = Number(token);
  return `f${Object.is(value, -0) ? '-0' : value}`;
}

/** Longer texts are the same only letter by letter: to take them apart would keep everybody waiting. */
const MAX_COMPARED = 262_144;

/** Compares two valid JSON texts. */
export function sameJson(a: string, b: string): boolean {
  if (a === b) return true;
  return a.length <= MAX_COMPARED && b.length <= MAX_COMPARED && sameValue(tagged(a), tagged(b));
}

function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (
    typeof a !== 'object' ||
    typeof b !== 'object' ||
    a === null ||
    b === null ||
    Array.isArray(a) !== Array.isArray(b)
  )
    return false;
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && sameValue(left[key], right[key]));
}
