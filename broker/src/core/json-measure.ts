/**
 * What a peer can take in one message. A message may be 33 levels deep for anybody; what a plain Tay client takes (10,000 entries in one container, 1 MiB)
 * is narrower than what the extension allows. One that is beyond makes it drop its connection with everything that runs on it.
 */

/** Levels left for a text beside `type`: a result, or the arguments of `execute`. */
export const FIELD_LEVELS = 32;
/** Levels left for the arguments inside `job`. */
export const JOB_ARGS_LEVELS = 31;
/** Levels left for the details of a job's error inside the error of a request. */
export const DETAILS_LEVELS = 30;
const MAX_PLAIN_ENTRIES = 10_000;

/** Whether a valid JSON text of at most `maxBytes` UTF-8 bytes can be shown to a plain client. */
export function fitsPlainClient(text: string, maxBytes: number, maxLevels: number): boolean {
  return text.length * 3 <= maxBytes && isWithin(text, maxLevels, MAX_PLAIN_ENTRIES);
}

/** Whether a valid JSON text has no more levels (a leaf counts as one) and no more entries than this. */
export function isWithin(text: string, maxLevels: number, maxEntries = Number.POSITIVE_INFINITY): boolean {
  if (text.length <= maxLevels) return true;
  let depth = 0;
  let commas = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x22) at = endOfString(text, at);
    else if (unit === 0x7b || unit === 0x5b) {
      if (++depth >= maxLevels && (depth > maxLevels || !isEmptyFrom(text, at + 1))) return false;
    } else if (unit === 0x7d || unit === 0x5d) depth--;
    else if (unit === 0x2c && ++commas >= maxEntries) return false;
  }
  return true;
}

/** Whether the container that was just opened has nothing in it. */
function isEmptyFrom(text: string, from: number): boolean {
  let at = from;
  while (text.charCodeAt(at) <= 0x20) at++;
  return text.charCodeAt(at) === 0x7d || text.charCodeAt(at) === 0x5d;
}

function endOfString(text: string, quote: number): number {
  for (let at = quote + 1; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x5c) at++;
    else if (unit === 0x22) return at;
  }
  return text.length;
}
