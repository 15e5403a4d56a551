/**
 * Takes URLs that may be secrets out of op arguments before those go anywhere durable, and leaves everything else of the text untouched.
 *
 * A presigned URL is a bearer secret (Presigned URLs and object storage). It is expected as `url`, `putUrl` or `manifest[].url`; but a mistaken engine may put one
 * anywhere, say into an argv, where it is refused and must not be written down either. So every value under the key `url` or `putUrl` is withheld, and
 * every shorter text that holds a URL with a query or with user information. Withholding more than necessary costs nothing: the
 * executor gets every byte back.
 */
import { skipSpace, stringEnd } from './raw-json.js';

/** What a withheld text is replaced with, followed by its name in `secrets`. */
export const SECRET_REFERENCE_PREFIX = 'reelhost-secret:';

/** Most texts withheld from one op's arguments; beyond it only those under `url` and `putUrl` are. */
export const MAX_WITHHELD = 1_024;

/** Longest text, in characters of its JSON literal, that is withheld for what it holds: longer ones are files, not URLs. */
const MAX_LOOKALIKE = 16_384;

const COLON = 0x3a;
const SECRET_KEYS: ReadonlySet<string> = new Set(['url', 'putUrl']);
const URL_WITH_SECRET = /:\/\/[^\s]*[?@]/;

/** What every text has that holds something to withhold: an escape, behind which anything may be, or one of these as it is. */
const HINTS = ['\\', '://', '"url"', '"putUrl"'];

const MENTIONED = new RegExp(`${SECRET_REFERENCE_PREFIX}s(\\d+)`, 'g');

/** The arguments without what was withheld, and that by name. */
export type WithheldArgs = { readonly text: string; readonly secrets: Readonly<Record<string, string>> };

type Place = { readonly start: number; readonly end: number; readonly value: string; readonly isExpected: boolean };

/** The string values that must not be written down, in the order of the text. One pass, no stack. */
function secretPlaces(text: string): Place[] {
  const places: Place[] = [];
  let key: string | undefined;
  let end = 0;
  for (let start = text.indexOf('"'); start >= 0; start = text.indexOf('"', end)) {
    const between = text.slice(end, start).trim();
    end = stringEnd(text, start);
    const literal = text.slice(start, end);
    if (text.charCodeAt(skipSpace(text, end)) === COLON) {
      key = String(JSON.parse(literal));
      continue;
    }
    const isExpected = between === ':' && key !== undefined && SECRET_KEYS.has(key);
    if (!isExpected && (literal.length > MAX_LOOKALIKE || !/:|\\u/.test(literal))) continue;
    const value = String(JSON.parse(literal));
    if (isExpected || URL_WITH_SECRET.test(value)) places.push({ start, end, value, isExpected });
  }
  return places.length > MAX_WITHHELD ? places.filter((place) => place.isExpected) : places;
}

/**
 * Replaces each text that may be a secret in `argsText` (the JSON text of an object) by a reference `"reelhost-secret:<name>"`. Names are `s0`, `s1`, … in the
 * order of the text; a name whose reference already stands in the text is passed over, so that no argument is ever filled in by accident.
 */
export function withholdUrls(argsText: string): WithheldArgs {
  if (!HINTS.some((hint) => argsText.includes(hint))) return { text: argsText, secrets: {} };
  const secrets: Record<string, string> = {};
  const mentioned = new Set([...argsText.matchAll(MENTIONED)].map((found) => found[1]));
  let number = 0;
  let at = 0;
  let text = '';
  for (const place of secretPlaces(argsText)) {
    while (mentioned.has(String(number))) number += 1;
    const name = `s${number}`;
    number += 1;
    secrets[name] = place.value;
    text += `${argsText.slice(at, place.start)}"${SECRET_REFERENCE_PREFIX}${name}"`;
    at = place.end;
  }
  return { text: text + argsText.slice(at), secrets };
}

/** A URL as a log may show it: without query, fragment and user information. Anything that is no URL becomes `[no url]`. */
export function urlWithoutQuery(url: string): string {
  const match = /^([a-z][a-z0-9+.-]*:\/\/)(?:[^/?#@]*@)?([^/?#@]*)([^?#]*)/i.exec(url);
  return match === null ? '[no url]' : `${match[1]}${match[2]}${match[3]}`;
}
