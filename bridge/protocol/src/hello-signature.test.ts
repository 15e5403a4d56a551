/** What is signed, the host it is bound to, and how versions compare. */
import { expect, test } from 'vitest';
import { gatewayHostOf, helloSignatureText } from './hello-signature.js';
import { compareVersions, sameMajor } from './versions.js';

test('the signed text is the one of the document [RB-HS-07]', () => {
  expect(helloSignatureText('device-1', '2026-01-15T09:30:00Z', 'FIXTURE-nonce', 'runner.invalid')).toBe(
    'reelbolt-runner-hello-v1|device-1|2026-01-15T09:30:00Z|FIXTURE-nonce|runner.invalid',
  );
});

test.each([
  ['wss://Runner.Example.invalid/v1/connect', 'runner.example.invalid'],
  ['wss://runner.invalid:8443/v1/connect', 'runner.invalid'],
  ['ws://127.0.0.1:9000/v1/connect', '127.0.0.1'],
  ['ws://[::1]:9000/v1/connect', '::1'],
  ['Runner.invalid:443', 'runner.invalid'],
  ['[::1]:9000', '::1'],
])('the host of %s is %s, without port and in lower case [RB-HS-07]', (dialled, host) => {
  expect(gatewayHostOf(dialled)).toBe(host);
});

test.each([
  ['0.1.0', '0.2.0', -1],
  ['1.10.0', '1.9.9', 1],
  ['1.0', '1.0.0', 0],
  ['fonts-2026.1', 'fonts-2025.12', 1],
  ['v2', '2.0.1', -1],
  ['', '0', 0],
])('%s against %s is %d', (left, right, sign) => {
  expect(Math.sign(compareVersions(left, right))).toBe(sign);
  expect(Math.sign(compareVersions(right, left)) + sign).toBe(0);
});

test('peers speak together when their major numbers agree', () => {
  expect(sameMajor('1.0', '1.7')).toBe(true);
  expect(sameMajor('1.0', '2.0')).toBe(false);
});
