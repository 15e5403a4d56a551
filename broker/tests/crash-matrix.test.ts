/**
 * The broker is killed at every named point of a job's life and started again. A ledger counts what really ran: for an executor of the extension
 * exactly once, for a plain Tay worker as often as Tay documents (at least once); the producer, who repeats its enqueue, always gets the one outcome.
 */
import { expect, test } from 'vitest';
import { BrokerHome } from './broker-process.js';
import { type Message, RawPeer } from './raw-peer.js';

interface Owed {
  readonly ids: { readonly reservation_id: string; readonly execution_id: string };
  readonly jobId: unknown;
}

/** An executor that survives the broker. One of the extension keeps its reports until they are accepted, a plain one forgets them with the connection. */
class LedgerWorker {
  runs = 0;
  #owed: Owed[] = [];
  readonly #extension: boolean;

  constructor(extension: boolean) {
    this.#extension = extension;
  }

  async connect(socket: string): Promise<{ readonly peer: RawPeer; readonly ended: Promise<void> }> {
    const peer = await RawPeer.connect(socket);
    const resume = this.#owed.map(({ ids, jobId }) => ({ ...ids, job_id: jobId, state: 'finished' }));
    const more = this.#extension ? { extensions: ['reelhost.1'], pid: process.pid, resume } : {};
    const hello = await peer.request('hello', { mode: 'worker', runtime_id: 'ledger', max_concurrency: 1, ...more });
    const wanted = (hello['resume'] ?? []) as { readonly execution_id: string; readonly wanted: boolean }[];
    for (const owed of this.#owed.splice(0)) {
      if (!wanted.some((entry) => entry.wanted && entry.execution_id === owed.ids.execution_id)) continue;
      expect((await this.#report(peer, owed)).type).toBe('accepted');
    }
    const ended = this.#serve(peer).catch(() => undefined);
    peer.send({ version: 1, type: 'register_tasks', request_id: 'tasks', tasks: ['t'] });
    return { peer, ended };
  }

  async #serve(peer: RawPeer): Promise<never> {
    for (;;) {
      const order = await peer.take('execute', 60_000);
      const ids = {
        reservation_id: order['reservation_id'] as string,
        execution_id: order['execution_id'] as string,
      };
      const owed = { ids, jobId: order['job_id'] };
      this.runs++;
      if (this.#extension) this.#owed.push(owed);
      await this.#report(peer, owed);
      this.#owed = this.#owed.filter((each) => each !== owed);
    }
  }

  #report(peer: RawPeer, owed: Owed): Promise<Message> {
    return peer.request('succeeded', { ...owed.ids, result: { run: this.runs } });
  }
}

const cells = (['enqueue', 'start', 'settle'] as const).flatMap((step) =>
  (['received', 'committed', 'sent'] as const).flatMap((phase) =>
    [true, false].map((extension) => ({ step, phase, extension })),
  ),
);

/** Runs of a plain worker: again when it had run and its report was not durable. */
function plainRuns(step: string, phase: string): number {
  return (step === 'start' && phase === 'sent') || (step === 'settle' && phase === 'received') ? 2 : 1;
}

test.each(cells)(
  'killed at $step, $phase; extension: $extension',
  async ({ step, phase, extension }) => {
    const home = new BrokerHome();
    try {
      const broker = await home.start([], { env: { REELHOST_BROKER_CRASH_AT: `${phase}:${step}` } });
      const worker = new LedgerWorker(extension);
      const job = { task: 't', args: { n: 1 }, options: { submission_id: 'one' }, watch: true };
      const first = await RawPeer.client(home.socket);
      const answer = await first.request('enqueue', job).catch(() => null);
      if (step !== 'enqueue') {
        expect(answer?.type).toBe('enqueued');
        const { ended } = await worker.connect(home.socket);
        await ended;
      } else expect(answer?.type).toBe(phase === 'sent' ? 'enqueued' : undefined);
      await broker.exited;
      expect(broker.child.signalCode).toBe('SIGKILL');

      await home.start();
      const { peer } = await worker.connect(home.socket);
      const second = await RawPeer.client(home.socket);
      const again = await second.request('enqueue', job);
      if (answer !== null) expect(again['job_id']).toBe(answer['job_id']);
      const settled = await second.take('job_settled', 20_000);
      const runs = extension ? 1 : plainRuns(step, phase);
      expect(settled).toMatchObject({ job_id: again['job_id'], state: 'completed', result: { run: runs } });
      expect(worker.runs).toBe(runs);
      for (const each of [peer, first, second]) await each.close();
    } finally {
      await home.remove();
    }
  },
  60_000,
); // prettier-ignore
