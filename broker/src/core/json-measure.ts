/**
 * What a plain Tay client can take in one message. Its limits (32 levels below the root, 10,000 entries in one container, 1 MiB) are narrower than those of
 * the extension, and a message beyond them makes it drop its connection with everything that runs on it.
 */

/** Levels of an arguments or result text that still fit when it is placed inside `job` or beside `type`. */
const MAX_PLAIN_LEVELS = 31;
/** The same for the arguments of `execute`, which stand a level higher. */
export const MAX_PLAIN_ORDER_LEVELS = 32;
const MAX_PLAIN_ENTRIES = 10_000;

/** Whether a valid JSON text of at most `maxBytes` UTF-8 bytes can be shown to a plain client. */
export function fitsPlainClient(text: string, maxBytes: number, maxLevels = MAX_PLAIN_LEVELS): boolean {
  if (text.length * 3 > maxBytes) return false;
  if (text.length <= maxLevels) return true;
  let depth = 0;
  let commas = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x22) at = endOfString(text, at);
    else if (unit === 0x7b || unit === 0x5b) {
      if (++depth > maxLevels) return false;
    } else if (unit === 0x7d || unit === 0x5d) depth--;
    else if (unit === 0x2c && ++commas >= MAX_PLAIN_ENTRIES) return false;
  }
  return true;
}

function endOfString(text: string, quote: number): number {
  for (let at = quote + 1; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x5c) at++;
    else if (unit === 0x22) return at;
  }
  return text.length;
}
