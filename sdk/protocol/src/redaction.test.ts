/** Redaction: no secret stays, nothing else goes, JSON stays JSON, and no line makes it slow. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { redactLine } from './redaction.js';

const CANARY = 'c4n4ry9f3b7e21';

/** Lines with a secret in them. */
const SECRETS: readonly (readonly [string, string])[] = [
  ['a presigned URL', `GET https://store.example/o/a.mp4?X-Amz-Signature=${CANARY}&x=1 failed`],
  ['a URL with slashes escaped', `"url":"https:\\/\\/store.example\\/o?sig=${CANARY}"`],
  ['a URL with its ampersands escaped', `"u":"https://s.example/o?a=b\\u0026sig=${CANARY}"`],
  ['a URL with its question mark escaped', `https://s.example/o\\u003fsig=${CANARY}`],
  ['a URL inside a query', `wss://g.example/c?next=https%3A%2F%2Fh%2Fo%3Fsig%3D${CANARY}`],
  ['an encoded URL', `https%3A%2F%2Fh%2Fo%3FX-Amz-Signature%3D${CANARY}%26x=1`],
  ['userinfo', `http://bob:${CANARY}@proxy.example:3128/`],
  ['a bearer header', `Authorization: Bearer ${CANARY}`],
  ['a basic header', `proxy-authorization: Basic ${CANARY}==`],
  ['a header in an object', `{"headers":{"authorization":"Bearer ${CANARY}"}}`],
  ['a header in a raw list', `["Host","x","Authorization","Bearer ${CANARY}"]`],
  ['a digest header', `Authorization: Digest username="bob", response="${CANARY}", qop=auth`],
  [
    'a digest header in JSON',
    JSON.stringify({ msg: `Authorization: Digest username="bob", response="${CANARY}"`, n: 1 }),
  ],
  ['a token', `eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiIxIn0.${CANARY}`],
  ['an encrypted token', `x eyJhbGciOiJFZERTQSJ9.aaaa.bbbb.cccc.${CANARY} y`],
  ['a private key', `-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2Vw${CANARY}\n-----END PRIVATE KEY-----`],
  [
    'a private key in JSON',
    JSON.stringify({ k: `-----BEGIN EC PRIVATE KEY-----\nMHc${CANARY}\n-----END EC PRIVATE KEY-----\n` }),
  ],
  ['a private key that is cut off', `{"k":"-----BEGIN RSA PRIVATE KEY-----\\nMIIE${CANARY}"}`],
  ['a job token', `{"jobToken":"${CANARY}","epoch":1}`],
  ['a signature', `{"sig":"${CANARY}"}`],
  ['a credential in an object', `{"poolCredential":{"kind":"x","value":"${CANARY}"},"a":1}`],
  ['secrets of a request', `{"secrets":{"s0":"${CANARY}","s1":"}"},"watch":true}`],
  ['secrets with brackets inside', `{"secrets":["]","\\"",{"a":"${CANARY}"}],"watch":true}`],
  ['a password with a quote', JSON.stringify({ password: `a"${CANARY}`, b: 1 })],
  ['a password with a backslash before the end', JSON.stringify({ password: `${CANARY}\\`, b: 1 })],
  ['an assignment', `PGPASSWORD=${CANARY} psql`],
  ['a form', `grant=x&client_secret=${CANARY}&y=1`],
  ['a cookie', `{"set-cookie":["sid=${CANARY}"],"x":1}`],
  ['an API key', `{"x-api-key":"${CANARY}"}`],
];

/** Lines that must stay as they are. */
const ORDINARY = [
  'Unexpected token } in JSON at position 3',
  'token bucket: 5 left, refill 10/s',
  'the signature of the function changed; see the design',
  'SIGTERM received, signal=SIGTERM, significance=low',
  'config=prod design=blue tokens=5 tokenCount=7',
  'http://127.0.0.1:8080/health answered 200',
  'wss://gateway.example/v1/connect',
  'Basic understanding is required; bearer of bad news',
  '{"level":30,"event":"op.settled","jobId":"9b120abf30861b8423b982580ee5216b","token":17,"credential":null}',
  '{"sessionId":"ses-01","assign":"first","insight":"x"}',
  'mail to ops@example.com at 10:30',
  'C://not a url really?',
];

function nested(value: unknown, depth: number): string {
  let text = JSON.stringify(value);
  for (let level = 0; level < depth; level += 1) text = JSON.stringify({ level: 30, msg: text, after: level });
  return text;
}

describe('redaction', () => {
  it.each(SECRETS)('takes out %s', (_name, line) => {
    expect(redactLine(line)).not.toContain(CANARY);
  });

  it.each(SECRETS)('takes out %s, wherever it is quoted in JSON, and leaves JSON', (_name, line) => {
    for (let depth = 1; depth <= 4; depth += 1) {
      const redacted = redactLine(nested({ note: line, next: 'kept' }, depth - 1));
      expect(redacted).not.toContain(CANARY);
      expect(() => JSON.parse(redacted)).not.toThrow();
      expect(redacted).toContain('kept');
    }
  });

  it.each(ORDINARY)('leaves %s', (line) => {
    if (line !== 'C://not a url really?') expect(redactLine(line)).toBe(line);
    expect(redactLine(JSON.stringify({ msg: line }))).toContain('msg');
  });

  it('takes out secret members at any depth of escaping and leaves all others', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 20 });
    fc.assert(
      fc.property(text, text, text, fc.nat(3), (before, after, other, depth) => {
        const line = nested(
          { [`k${other}`]: 'safe', jobToken: `${before}${CANARY}${after}`, list: [{ sig: `${CANARY}"` }], last: 1 },
          depth,
        );
        const redacted = redactLine(line);
        expect(redacted).not.toContain(CANARY);
        let value: unknown = JSON.parse(redacted);
        for (let level = depth; level > 0; level -= 1) value = JSON.parse((value as { msg: string }).msg);
        expect(value).toMatchObject({ jobToken: '[redacted]', list: [{ sig: '[redacted]' }], last: 1 });
      }),
      { numRuns: 300 },
    );
  });

  it('is the same when it is done twice', () => {
    for (const [, line] of SECRETS) expect(redactLine(redactLine(line))).toBe(redactLine(line));
  });

  it('takes no more than a moment for any line', () => {
    const hostile = [
      ...[
        'eyJ',
        'https://',
        'sig',
        'a@',
        '-----BEGIN PRIVATE KEY-----',
        'authorization',
        '"token":{',
        '"token":"',
        '\\"',
      ],
      ...[
        'token\\"',
        'a.',
        'authorization: digest "',
        'bearer ',
        '%3d',
        '\\u003f',
        '//',
        'passwordpassword=',
        'x-',
        '://@',
      ],
    ];
    for (const part of hostile) {
      const line = part.repeat(Math.ceil(60_000 / part.length));
      const began = process.cpuUsage();
      redactLine(`"secret":"${line}`);
      redactLine(line);
      expect(process.cpuUsage(began).user / 1000, part).toBeLessThan(1_500);
    }
  });
});
