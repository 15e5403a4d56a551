import { describe, expect, it } from 'vitest';
import { isLoopback, proxyFor } from './proxy-choice.js';
import { delayBefore, judgeAnswer, MAX_TRIES, parseRetryAfter } from './retry-policy.js';
import { isOlderThan, parseVersion } from './version.js';

describe('the choice of a proxy', () => {
  const proxy = { HTTPS_PROXY: 'http://proxy.example.invalid:3128' };
  it.each<[string, Record<string, string>, string, number, string | undefined]>([
    ['none configured', {}, 'store.invalid', 443, undefined],
    ['upper case', proxy, 'store.invalid', 443, proxy.HTTPS_PROXY],
    [
      'lower case wins',
      { ...proxy, https_proxy: 'http://other.invalid:1' },
      'store.invalid',
      443,
      'http://other.invalid:1',
    ],
    ['without a scheme', { https_proxy: 'other.invalid:1' }, 'store.invalid', 443, 'http://other.invalid:1'],
    ['ALL_PROXY', { ALL_PROXY: 'http://all.invalid:1' }, 'store.invalid', 443, 'http://all.invalid:1'],
    ['excepted by name', { ...proxy, NO_PROXY: 'a.invalid, store.invalid' }, 'store.invalid', 443, undefined],
    ['excepted by domain', { ...proxy, NO_PROXY: '.store.invalid' }, 'eu.store.invalid', 443, undefined],
    ['no part of a name', { ...proxy, NO_PROXY: 'ore.invalid' }, 'store.invalid', 443, proxy.HTTPS_PROXY],
    ['excepted with port', { ...proxy, NO_PROXY: 'store.invalid:9000' }, 'store.invalid', 9000, undefined],
    ['another port', { ...proxy, NO_PROXY: 'store.invalid:9000' }, 'store.invalid', 443, proxy.HTTPS_PROXY],
    ['everything', { ...proxy, no_proxy: '*' }, 'store.invalid', 443, undefined],
    ['a network', { ...proxy, NO_PROXY: '10.0.0.0/8' }, '10.9.8.7', 443, undefined],
    ['outside the network', { ...proxy, NO_PROXY: '10.0.0.0/8' }, '11.9.8.7', 443, proxy.HTTPS_PROXY],
  ])('%s', (_name, variables, host, port, expected) => {
    expect(proxyFor(host, port, variables)).toBe(expected);
  });

  it('knows loopback by address and name only', () => {
    for (const host of ['127.0.0.1', '127.9.9.9', '::1', '[::1]', 'localhost', 'store.localhost'])
      expect(isLoopback(host)).toBe(true);
    for (const host of ['127.0.0.1.evil.invalid', '10.0.0.1', 'localhost.evil.invalid', '::2', '127.1'])
      expect(isLoopback(host)).toBe(false);
  });
});

describe('the judgement of an answer', () => {
  it.each<[number, string, object]>([
    [200, '', { kind: 'done' }],
    [204, '', { kind: 'done' }],
    [301, '', { kind: 'refused', retryable: false, detail: 'redirect' }],
    [400, '<Code>ExpiredRequest</Code>', { kind: 'refused', retryable: true, detail: 'url_expired' }],
    [400, '<Code>MalformedXML</Code>', { kind: 'refused', retryable: false }],
    [403, 'Request has expired', { kind: 'refused', retryable: true, detail: 'url_expired' }],
    [403, 'SignatureDoesNotMatch', { kind: 'refused', retryable: true }],
    [404, '', { kind: 'refused', retryable: false, detail: 'not_found' }],
    [408, '', { kind: 'again' }],
    [411, '', { kind: 'refused', retryable: false }],
    [429, '', { kind: 'again' }],
    [500, '', { kind: 'again' }],
    [501, '', { kind: 'refused', retryable: true }],
    [503, '', { kind: 'again' }],
  ])('%i %s', (status, body, meaning) => {
    expect(judgeAnswer(status, body)).toMatchObject(meaning);
  });

  it('waits longer each time, ends after the last try, and obeys the store within reason', () => {
    expect([2, 3, 4, 5].map((next) => delayBefore(next, 0.999999))).toEqual([250, 500, 1000, 2000]);
    expect(delayBefore(2, 0)).toBe(125);
    expect(delayBefore(MAX_TRIES + 1, 0)).toBeUndefined();
    expect(delayBefore(2, 0, 4000)).toBe(4000);
    expect(delayBefore(2, 0, 61_000)).toBeUndefined();
    expect(parseRetryAfter('12', 0)).toBe(12_000);
    expect(parseRetryAfter('Thu, 01 Jan 1970 00:00:30 GMT', 10_000)).toBe(20_000);
    expect(parseRetryAfter('Thu, 01 Jan 1970 00:00:01 GMT', 10_000)).toBe(0);
    expect(parseRetryAfter('soon', 0)).toBeUndefined();
  });
});

describe('the version of a program', () => {
  it.each([
    ['ffmpeg version 7.1.5-0+deb13u1 Copyright', '7.1.5-0+deb13u1', 7, false],
    ['ffmpeg version n9.0.2-17-g2a571b6068 Copyright', 'n9.0.2-17-g2a571b6068', 9, false],
    ['ffmpeg version 4.3.9 Copyright', '4.3.9', 4, true],
    [
      'ffmpeg version N-47683-g0e8eb07980-static Copyright\nlibavutil 56. 24.101\nlibavcodec     58. 42.102 / 58. 42.102\n',
      'N-47683-g0e8eb07980-static',
      4,
      true,
    ],
    ['ffmpeg version N-99999-gabc Copyright\nlibavcodec     58.134.100 / 58.134.100\n', 'N-99999-gabc', 4, false],
    ['ffmpeg version git-2031 Copyright\nlibavcodec     99.  1.100 / 99.  1.100\n', 'git-2031', undefined, false],
  ])('%s', (banner, text, major, old) => {
    const version = parseVersion(banner);
    expect(version.text).toBe(text);
    expect(version.major).toBe(major);
    expect(isOlderThan(version, { major: 4, minor: 4 })).toBe(old);
  });
});
