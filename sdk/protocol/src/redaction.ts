/**
 * Takes secrets out of one log line. The last step before a line leaves the process; a net below care, not a replacement for it.
 *
 * It knows: URL query strings and userinfo, Authorization headers, JSON Web Tokens, PEM private keys, values of members whose name
 * says that they are secret (`jobToken`, `sig`, `credential`, `password` …), also as `name=value`. JSON inside JSON strings is
 * understood at any depth of escaping, and a line that was JSON is JSON afterwards: closing quotes are never eaten.
 * It must never touch ordinary text: prose about tokens stays readable.
 */
const SUSPICIOUS =
  /:\\*\/\\*\/|eyJ|-----BEGIN|token|secret|passw|passphrase|credential|sig|authorization|api[-_]?key|cookie|private[-_]?key|access[-_]?key/i;

const MARK = '[redacted]';

// Slashes, ampersands and the like may be escaped inside JSON; a backslash otherwise ends a URL (it begins an escaped quote).
const URL_CHARACTER = String.raw`(?:[^\s"'<>\\\u0060]|\\+\/|\\+u00(?!22|27|3[cCeE])[0-9a-fA-F]{2})`;
const URL_WITH_SECRETS = new RegExp(
  String.raw`([a-z][a-z0-9+.-]{0,20}:(?:\\*\/){2})((?:(?![?#@/]|\\+u003f|\\+\/)${URL_CHARACTER})*@)?((?:(?!\?|\\+u003f)${URL_CHARACTER})*)((?:\?|\\+u003f)${URL_CHARACTER}*)?`,
  'gi',
);
const JWT = /\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)+/g;
const PEM =
  /-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY-----(?:[^"-]|-(?!----))*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|(?=\\*")|$)/g;
const AUTHORIZATION_QUOTED = /((?:proxy-)?authorization(\\*)"\s*:\s*\\*")((?:(?!\2"|\n)[\s\S])*)/gi;
const AUTHORIZATION_PLAIN =
  /\b((?:proxy-)?authorization\s*[:=]\s*)((?:digest\s+)(?:[^"\r\n\\]|\\+"|"[^"\r\n]*"(?=\s*(?:,\s*[a-z]|$|[\r\n])))+|(?:[a-z][\w-]*\s+)?[^\s"'\\,;]+)/gi;

const SECRET_NAME =
  '(?:[A-Za-z0-9_.-]*(?:token|secret|secrets|password|passwd|passphrase|credential|credentials|signature|api[-_]?key|private[-_]?key|access[-_]?key|cookie)|(?:[A-Za-z0-9_.]*[-_])?sig)';
const SECRET_STRING = new RegExp(
  String.raw`(?<![A-Za-z0-9_.-])(${SECRET_NAME}(\\*)"\s*:\s*\\*")((?:(?!\2")[\s\S])*)`,
  'gi',
);
const SECRET_OTHER = new RegExp(
  String.raw`(?<![A-Za-z0-9_.-])(${SECRET_NAME}\\*"\s*:\s*)([\[{])((?:\\*"(?:[^"\\]|\\+[^"\\])*\\*"|[^"\[\]{}])*)([\]}])`,
  'gi',
);
const SECRET_ASSIGNMENT = new RegExp(
  String.raw`(?<![A-Za-z0-9_.-])(${SECRET_NAME}(?:=|%3[dD]))((?:[^\s"'&;,<>\\)%]|%(?!26))+)`,
  'gi',
);

/** The line without what must not be seen; the same string when there was nothing. */
export function redactLine(text: string): string {
  if (!SUSPICIOUS.test(text)) return text;
  return text
    .replace(PEM, (_all, kind: string) => `-----BEGIN ${kind}PRIVATE KEY----- ${MARK}`)
    .replace(JWT, '[redacted-jwt]')
    .replace(
      URL_WITH_SECRETS,
      (_all, scheme: string, userinfo: string | undefined, rest: string, query: string | undefined) =>
        `${scheme}${userinfo === undefined ? '' : `${MARK}@`}${rest}${query === undefined ? '' : `?${MARK}`}`,
    )
    .replace(AUTHORIZATION_QUOTED, (_all, head: string) => head + MARK)
    .replace(AUTHORIZATION_PLAIN, (_all, head: string) => head + MARK)
    .replace(SECRET_STRING, (_all, head: string) => head + MARK)
    .replace(SECRET_OTHER, (_all, head: string, open: string, _inner: string, close: string) => head + open + close)
    .replace(SECRET_ASSIGNMENT, (_all, head: string) => head + MARK);
}
