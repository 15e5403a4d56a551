/** Many starters at once: exactly one broker. */
import { lstatSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { BrokerHome } from './broker-process.js';
import { RawPeer } from './raw-peer.js';

let home: BrokerHome;
beforeEach(() => {
  home = new BrokerHome();
});
afterEach(async () => {
  await home.remove();
});

test('20 starters at once over a stale socket leave exactly one, which is reachable; all others exit 5', async () => {
  const first = await home.start();
  await first.kill();
  expect(lstatSync(home.socket).isSocket()).toBe(true);
  const starters = Array.from({ length: 20 }, () => home.spawn());
  const ends = await Promise.all(
    starters.map((starter) =>
      Promise.race([starter.exited, starter.event('broker.ready', 25_000).then(() => 'ready' as const)]),
    ),
  );
  expect(ends.filter((end) => end === 'ready')).toHaveLength(1);
  expect(ends.filter((end) => end === 5)).toHaveLength(19);
  await (await RawPeer.client(home.socket)).close();
}, 60_000);
