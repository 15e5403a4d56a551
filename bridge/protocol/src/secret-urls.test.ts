/** Presigned URLs leave the arguments, everything else stays where it was. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { urlWithoutQuery, withholdUrls } from './secret-urls.js';

const URL_A = 'https://objects.invalid/a?X-Amz-Signature=FIXTURE-signature-a';
const URL_B = 'https://objects.invalid/b?X-Amz-Signature=FIXTURE-signature-b';

test('url, putUrl and the urls of a manifest are withheld, and nothing else changes by a byte [RB-URL-04]', () => {
  const text = `{ "path":"a",  "url" : "${URL_A}", "n":1.0 }`;
  expect(withholdUrls(text)).toEqual({
    text: '{ "path":"a",  "url" : "reelhost-secret:s0", "n":1.0 }',
    secrets: { s0: URL_A },
  });
  const manifest = `{"manifest":[{"path":"a","url":"${URL_A}"},{"url":"${URL_B}","path":"b"},7,null],"putUrl":"${URL_B}"}`;
  const withheld = withholdUrls(manifest);
  expect(withheld.text).toBe(
    '{"manifest":[{"path":"a","url":"reelhost-secret:s0"},{"url":"reelhost-secret:s1","path":"b"},7,null],"putUrl":"reelhost-secret:s2"}',
  );
  expect(withheld.secrets).toEqual({ s0: URL_A, s1: URL_B, s2: URL_B });
});

test('a URL with a query or a password is withheld wherever it stands, and given back byte for byte', () => {
  const argv = `{"argv":["-i","${URL_A}","movie=${URL_B}","-y"],"path":"${URL_A}","timeoutSec":5}`;
  const withheld = withholdUrls(argv);
  expect(withheld.text).toBe(
    '{"argv":["-i","reelhost-secret:s0","reelhost-secret:s1","-y"],"path":"reelhost-secret:s2","timeoutSec":5}',
  );
  expect(withheld.secrets).toEqual({ s0: URL_A, s1: `movie=${URL_B}`, s2: URL_A });
  expect(withholdUrls('{"deep":[{"a":["ftp://user:FIXTURE@objects.invalid/x"]}]}').secrets).toEqual({
    s0: 'ftp://user:FIXTURE@objects.invalid/x',
  });
});

test('ordinary text stays: plain URLs, questions, long files', () => {
  const args = {
    content: `${'// https://fonts.invalid/css?family=a\n'.repeat(1000)}`,
    argv: ['a?b@c', 'https://plain.invalid/x', '0:v?'],
  };
  expect(withholdUrls(JSON.stringify(args))).toEqual({ text: JSON.stringify(args), secrets: {} });
});

test('more than 1,024 look-alikes: only what is expected to be a URL is withheld', () => {
  const args = { argv: Array.from({ length: 1100 }, () => URL_A), url: URL_B };
  expect(withholdUrls(JSON.stringify(args)).secrets).toEqual({ s0: URL_B });
});

test('an escaped key, a repeated key and an escaped URL are withheld too', () => {
  const text = `{"\\u0075rl":"${URL_A}","url":"${URL_B.replaceAll('/', '\\/')}"}`;
  const withheld = withholdUrls(text);
  expect(withheld.text).not.toContain('FIXTURE');
  expect(withheld.secrets).toEqual({ s0: URL_A, s1: URL_B });
});

test('arguments that already speak of a reference are not filled in by accident', () => {
  const text = `{"content":"reelhost-secret:s0","url":"${URL_A}"}`;
  expect(withholdUrls(text)).toEqual({
    text: '{"content":"reelhost-secret:s0","url":"reelhost-secret:s1"}',
    secrets: { s1: URL_A },
  });
});

test('putting the secrets back gives the same arguments, whatever they are', () => {
  const args = fc.record(
    {
      url: fc.webUrl({ withQueryParameters: true }),
      putUrl: fc.oneof(fc.webUrl(), fc.integer()),
      manifest: fc.array(fc.record({ path: fc.string(), url: fc.webUrl() })),
      other: fc.jsonValue({ maxDepth: 3 }),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(args, (value) => {
      const text = JSON.stringify(value);
      const withheld = withholdUrls(text);
      const back = withheld.text.replace(/"reelhost-secret:(s\d+)"/g, (found, name: string) =>
        name in withheld.secrets ? JSON.stringify(withheld.secrets[name]) : found,
      );
      expect(JSON.parse(back)).toEqual(JSON.parse(text));
    }),
    { numRuns: 40 },
  );
});

test('a URL is logged without query, fragment and user [RB-HS-14] [RB-URL-04]', () => {
  expect(urlWithoutQuery(URL_A)).toBe('https://objects.invalid/a');
  expect(urlWithoutQuery('https://user:FIXTURE@objects.invalid:8443/a/b#c')).toBe('https://objects.invalid:8443/a/b');
  expect(urlWithoutQuery('no url?X=FIXTURE')).toBe('[no url]');
});
