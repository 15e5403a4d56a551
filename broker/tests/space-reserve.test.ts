/** The reserve says why it cannot be made, when that is not for lack of space. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SpaceReserve } from '../src/state/space-reserve.js';
import { BrokerHome } from './broker-process.js';
import { RawPeer } from './raw-peer.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'rhr-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test('what stands in its way is named, and forgotten when it is gone', () => {
  const reserve = new SpaceReserve(join(directory, 'r'), 4096, 0);
  mkdirSync(join(directory, 'r.new'));
  expect(reserve.take()).toBe(false);
  expect(reserve.missingBytes()).toBe(0);
  expect(reserve.trouble).toContain('EISDIR');
  rmSync(join(directory, 'r.new'), { recursive: true });
  expect(reserve.take()).toBe(true);
  expect(reserve.trouble).toBeNull();
});

test('a broker says so instead of blaming the disk', async () => {
  const home = new BrokerHome();
  try {
    mkdirSync(join(home.stateDir, 'space-reserve.new'), { recursive: true });
    const broker = await home.start();
    expect(await broker.event('broker.degraded')).toMatchObject({
      code: 'journal_error',
      reason: expect.stringContaining('space-reserve.new'),
    });
    const client = await RawPeer.client(home.socket);
    expect(await client.request('enqueue', { task: 'none', args: {} })).toMatchObject({
      error: { code: 'unavailable', reason: 'journal_error' },
    });
    await client.close();
  } finally {
    await home.remove();
  }
});
