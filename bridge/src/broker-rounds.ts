/** Requests to the broker that belong to no job of now: whether it can take work, and the closing of what an earlier life left. They decide nothing more. */
import { type BrokerClient, BrokerError } from '@reelhost/sdk';
import { isDegraded, PASSING, sessionFacts, within } from './broker-words.js';

/** A living broker answers within this time. */
const PROBE_TIMEOUT_MS = 4_000;

/** `full`: it lives, but cannot write its journal. `silent`: it is not there, or does not answer. */
export type BrokerHealth = 'alive' | 'full' | 'silent';

/** One round trip. Never rejects. */
export async function probeBroker(client: BrokerClient | null): Promise<BrokerHealth> {
  if (client === null || !client.isConnected) return 'silent';
  try {
    const { data } = await within(client.inspect('stats'), PROBE_TIMEOUT_MS);
    return isDegraded(data) ? 'full' : 'alive';
  } catch (error) {
    return error instanceof BrokerError && !PASSING.has(error.code) ? 'alive' : 'silent';
  }
}

/** Closes the open sessions of `owner` that `isHeld` does not know: remains of an earlier life. Answers how many. @throws BrokerError */
export async function sweepSessions(
  client: BrokerClient,
  owner: string,
  isHeld: (localId: string) => boolean,
): Promise<number> {
  let swept = 0;
  let cursor: string | undefined;
  do {
    const page = await client.inspect('sessions', { state: 'open', limit: 500, cursor });
    for (const session of Array.isArray(page.data) ? page.data : []) {
      const facts = sessionFacts(session);
      if (facts.id === null || facts.owner !== owner || isHeld(facts.id)) continue;
      await client.closeSession(facts.id, { graceMs: 0 });
      swept += 1;
    }
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return swept;
}
