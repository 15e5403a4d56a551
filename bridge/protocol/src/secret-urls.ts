/**
 * Takes the presigned URLs out of op arguments before those go anywhere durable, and leaves everything else of the text untouched.
 *
 * A URL is a bearer secret (Presigned URLs and object storage). The arguments that hold one are `url` and `putUrl` of the arguments themselves
 * and `url` of each entry of `manifest`, whatever the op is called: an op added later with the same names is covered.
 */
import { slicesOf } from './raw-json.js';

/** What a withheld URL is replaced with, followed by its name in `secrets`. */
export const SECRET_REFERENCE_PREFIX = 'reelhost-secret:';

/** The arguments without their URLs, and the URLs by name. */
export type WithheldArgs = { readonly text: string; readonly secrets: Readonly<Record<string, string>> };

type Place = { readonly start: number; readonly end: number; readonly url: string };

function stringPlace(text: string, slice: { start: number; end: number }): Place[] {
  const value: unknown = JSON.parse(text.slice(slice.start, slice.end));
  return typeof value === 'string' ? [{ start: slice.start, end: slice.end, url: value }] : [];
}

function urlPlaces(text: string): Place[] {
  return slicesOf(text).flatMap((member) => {
    if (member.key === 'url' || member.key === 'putUrl') return stringPlace(text, member);
    if (member.key !== 'manifest' || text[member.start] !== '[') return [];
    return slicesOf(text, member.start).flatMap((entry) =>
      text[entry.start] === '{'
        ? slicesOf(text, entry.start)
            .filter((field) => field.key === 'url')
            .flatMap((field) => stringPlace(text, field))
        : [],
    );
  });
}

/**
 * Replaces each presigned URL of `argsText` (the JSON text of an object) by a reference `"reelhost-secret:<name>"`. Names are `s0`, `s1`, … in the
 * order of the text; a name whose reference already stands in the text is passed over, so that no argument is ever filled in by accident.
 */
export function withholdUrls(argsText: string): WithheldArgs {
  const secrets: Record<string, string> = {};
  let number = 0;
  let at = 0;
  let text = '';
  for (const place of urlPlaces(argsText)) {
    while (argsText.includes(`${SECRET_REFERENCE_PREFIX}s${number}"`)) number += 1;
    const name = `s${number}`;
    number += 1;
    secrets[name] = place.url;
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
