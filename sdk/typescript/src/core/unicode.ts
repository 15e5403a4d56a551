/** Half surrogate pairs: JavaScript strings may hold them, UTF-8 and therefore the wire may not. */
const HALF_PAIR = /\p{Surrogate}/u;
const HALF_PAIRS = /\p{Surrogate}/gu;

/** Whether a text can be written as UTF-8. */
export function isWellFormed(text: string): boolean {
  return !HALF_PAIR.test(text);
}

/** The text with U+FFFD in place of what can not be written as UTF-8. */
export function toWellFormed(text: string): string {
  return text.replace(HALF_PAIRS, '\ufffd');
}
