/**
 * Takes secrets out of one log line. The last step before a line leaves the process; a net below care, not a replacement for it.
 *
 * It knows: URL query strings and userinfo, Authorization headers, JSON Web Tokens, PEM private keys, values of members whose name
 * says that they are secret (`jobToken`, `sig`, `credential`, `password` …), also as `name=value`. JSON inside JSON strings is
 * understood at any depth of escaping, and a line that was JSON is JSON afterwards: closing quotes are never eaten.
 * It must never touch ordinary text (prose about tokens stays readable), and its time grows with the length of the line only.
 */
const SUSPICIOUS =
  /:\\*\/\\*\/|eyJ|-----BEGIN|token|secret|passw|passphrase|credential|sig|authorization|bearer|api[-_]?key|cookie|private[-_]?key|access[-_]?key/i;

const MARK = '[redacted]';

// Slashes, ampersands and the like may be escaped inside JSON; any other backslash ends a URL (it begins an escaped quote).
const URL_CHARACTER = String.raw`(?:[^\s"'<>\\\u0060]|\\+\/|\\+u00(?!22|27|3[cCeE])[0-9a-fA-F]{2})`;
const URL_WITH_SECRETS = new RegExp(
  String.raw`([a-z][a-z0-9+.-]{0,20}:(?:\\*\/){2})((?:(?![?#@/]|\\+u003f|\\+\/)${URL_CHARACTER})*@)?((?:(?!\?|\\+u003f)${URL_CHARACTER})*)((?:\?|\\+u003f)${URL_CHARACTER}*)?`,
  'gi',
);
const JWT = /\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)+/g;
const PEM =
  /-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY-----(?! \[redacted\])(?:[^"-]|-(?!----))*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|(?=\\*")|$)/g;

const SECRET_NAME =
  '(?:[A-Za-z0-9_.-]*(?:token|secrets?|password|passwd|passphrase|credentials?|signature|api[-_]?key|private[-_]?key|access[-_]?key|cookie|authorization)|(?:[A-Za-z0-9_.]*[-_])?sig)';
/** A member's name with its colon, and the quote, brace or bracket its value begins with. */
const SECRET_MEMBER = new RegExp(String.raw`(?<![A-Za-z0-9_.-])${SECRET_NAME}(\\*)"\s*[:,]\s*(\\*"|[[{])`, 'gi');
const SECRET_ASSIGNMENT = new RegExp(
  String.raw`(?<![A-Za-z0-9_.-])(${SECRET_NAME}(?:=|%3[dD]))((?:[^\s"'&;,<>\\)%]|%(?!26))+)`,
  'gi',
);
const AUTHORIZATION_DIGEST =
  /\b((?:proxy-)?authorization\s*[:=]\s*)digest\s+(?:[\w-]+=(?:\\*"[^"\\]*\\*"|[^\s,"'\\]+)(?:,\s*)?)+/gi;
const AUTHORIZATION = /\b((?:proxy-)?authorization\s*[:=]\s*)(?!\[redacted\])(?:[a-z][\w-]*\s+)?[^\s"'\\,;]+/gi;
const SCHEME = /\b(bearer|basic)(\s+)(?=[\w.+/=~-]*\d)[\w.+/=~-]{8,}/gi;

/** The line without what must not be seen; the same string when there was nothing. */
export function redactLine(text: string): string {
  if (!SUSPICIOUS.test(text)) return text;
  const plain = text
    .replace(PEM, (_all, kind: string) => `-----BEGIN ${kind}PRIVATE KEY----- ${MARK}`)
    .replace(JWT, '[redacted-jwt]')
    .replace(URL_WITH_SECRETS, redactUrl);
  return redactMembers(plain)
    .replace(AUTHORIZATION_DIGEST, (_all, head: string) => head + MARK)
    .replace(AUTHORIZATION, (_all, head: string) => head + MARK)
    .replace(SCHEME, (_all, scheme: string, blank: string) => scheme + blank + MARK)
    .replace(SECRET_ASSIGNMENT, (_all, head: string) => head + MARK);
}

function redactUrl(
  _all: string,
  scheme: string,
  userinfo: string | undefined,
  rest: string,
  query: string | undefined,
): string {
  return `${scheme}${userinfo === undefined ? '' : `${MARK}@`}${rest}${query === undefined ? '' : `?${MARK}`}`;
}

/** Empties strings, objects and arrays that are the value of a secret member. */
function redactMembers(text: string): string {
  let out = '';
  let from = 0;
  SECRET_MEMBER.lastIndex = 0;
  for (let match = SECRET_MEMBER.exec(text); match !== null; match = SECRET_MEMBER.exec(text)) {
    const slashes = match[1]?.length ?? 0;
    const opening = match[2] ?? '';
    const start = SECRET_MEMBER.lastIndex;
    const isString = opening.endsWith('"');
    const end = isString ? stringEnd(text, start, slashes) : containerEnd(text, start, slashes);
    out += text.slice(from, start) + (isString ? MARK : '');
    from = end;
    SECRET_MEMBER.lastIndex = end;
  }
  return from === 0 ? text : out + text.slice(from);
}

/**
 * Where the string ends that began before `start`, with its closing quote's backslashes. A quote that closes is preceded by `slashes`
 * backslashes more than an even multiple: anything else is a quote or a backslash of the content.
 */
function stringEnd(text: string, start: number, slashes: number): number {
  for (let quote = text.indexOf('"', start); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let run = 0;
    while (quote - run > start && text.charCodeAt(quote - run - 1) === 92) run += 1;
    if (run % (2 * (slashes + 1)) === slashes) return quote - slashes;
  }
  return text.length;
}

/** Where the object or array ends that began before `start`: the index of its closing bracket. */
function containerEnd(text: string, start: number, slashes: number): number {
  let depth = 1;
  for (let at = start; at < text.length; at += 1) {
    const c = text.charCodeAt(at);
    if (c === 34) at = stringEnd(text, at + 1, slashes) + slashes;
    else if (c === 123 || c === 91) depth += 1;
    else if (c === 125 || c === 93) {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return text.length;
}
