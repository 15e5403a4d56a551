/**
 * Runs the core: one input at a time, records committed before effects, one timer for everything that is due. It is the only place with a clock, and holds
 * the only state.
 *
 * Order of an input: one reading of the clock → step → records → effects → what nobody waits for (log lines, the timer, the status file), when the effects have
 * really left: the connection to the broker writes in a microtask, so that comes in a later one.
 */
import { gatewayHostOf, PROTOCOL_VERSION, type RunnerDraft, writeOutbound } from '@reelhost/bridge-protocol';
import type { BridgeStore } from './bridge-store.js';
import {
  type BridgeState,
  type Effect,
  type Input,
  nextWakeAt,
  type StatusView,
  statusOf,
  step,
} from './core/index.js';
import type { GatewayLink } from './gateway-link.js';
import type { Identity } from './identity.js';
import type { Log } from './log.js';

/** The part of the effects that concerns the broker. */
export type BrokerEffect = Extract<
  Effect,
  { kind: 'probeBroker' | 'openSession' | 'closeSession' | 'enqueueOp' | 'cancelOp' | 'recallOp' }
>;

/** Everything a driver works with. */
export type DriverParts = {
  readonly now: () => number;
  readonly random: () => number;
  readonly wallMs: () => number;
  readonly log: Log;
  readonly store: Pick<BridgeStore, 'commit'>;
  readonly identity: Identity;
  readonly gateway: URL;
  readonly link: Pick<GatewayLink, 'dial' | 'send' | 'close' | 'destroy'>;
  readonly broker: { readonly perform: (effect: BrokerEffect) => void };
  readonly onChange: () => void;
  readonly onExit: (code: number) => void;
};

const ARCHITECTURES: Readonly<Record<string, 'amd64' | 'arm64'>> = { x64: 'amd64', arm64: 'arm64' };

/** See the head of the file. */
export class Driver {
  #state: BridgeState;
  #parts: DriverParts | null = null;
  #inputs: Input[] = [];
  #isStepping = false;
  #timer: NodeJS.Timeout | null = null;
  #timerAt = Number.POSITIVE_INFINITY;
  #unsaid: Extract<Effect, { kind: 'log' }>[] = [];
  #isUntidy = false;
  #isOver = false;

  constructor(initial: BridgeState) {
    this.#state = initial;
  }

  /** Begins to run; inputs given before are handled now. */
  start(parts: DriverParts): void {
    this.#parts = parts;
    this.input({ kind: 'timePassed' });
  }

  /** Something happened. Inputs that come up while a step is carried out are handled after it. */
  input(input: Input): void {
    if (this.#isOver) return;
    this.#inputs.push(input);
    if (this.#isStepping || this.#parts === null) return;
    this.#isStepping = true;
    try {
      for (let next = this.#inputs.shift(); next !== undefined && !this.#isOver; next = this.#inputs.shift()) {
        this.#step(this.#parts, next);
      }
    } finally {
      this.#isStepping = false;
      this.#tidyLater(this.#parts);
    }
  }

  /** The state as people see it. */
  view(now: number): StatusView {
    return statusOf(this.#state, now);
  }

  /** True while a held job owns the local session. */
  ownsSession(localId: string): boolean {
    for (const job of this.#state.jobs.values())
      if (job.session?.localId === localId && job.ending === null) return true;
    return false;
  }

  /** No more steps. */
  stop(): void {
    this.#isOver = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#parts !== null) this.#sayAll(this.#parts);
  }

  #step(parts: DriverParts, input: Input): void {
    const { state, records, effects } = step(this.#state, input, parts.now(), parts.random());
    this.#state = state;
    try {
      parts.store.commit(records);
    } catch (error) {
      // A full disk: the lease protocol keeps us honest without the file, only a restart would forget these jobs.
      parts.log('error', 'journal.failed', {
        code: error instanceof Error && 'code' in error ? String(error.code) : 'error',
      });
    }
    for (const effect of effects) this.#perform(parts, effect);
  }

  #tidyLater(parts: DriverParts): void {
    if (this.#isUntidy) return;
    this.#isUntidy = true;
    queueMicrotask(() => {
      this.#isUntidy = false;
      this.#sayAll(parts);
      this.#schedule();
      parts.onChange();
    });
  }

  #sayAll(parts: DriverParts): void {
    const lines = this.#unsaid;
    this.#unsaid = [];
    for (const { level, event, fields } of lines) parts.log(level, event, fields);
  }

  /** A timer that fires too early does no harm, so one is replaced only by an earlier one. */
  #schedule(): void {
    const { lastStepAt } = this.#state;
    const wakeAt = nextWakeAt(this.#state);
    if (this.#isOver || wakeAt >= this.#timerAt) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timerAt = wakeAt;
    this.#timer = setTimeout(
      () => {
        this.#timerAt = Number.POSITIVE_INFINITY;
        this.input({ kind: 'timePassed' });
      },
      Math.max(1, Math.ceil(wakeAt - lastStepAt)),
    );
  }

  #perform(parts: DriverParts, effect: Effect): void {
    switch (effect.kind) {
      case 'dial':
        parts.link.dial(effect.generation);
        return;
      case 'sendHello':
        this.#sayHello(parts, effect);
        return;
      case 'send':
        parts.link.send(effect.generation, effect.text);
        return;
      case 'closeLink':
        parts.link.close(effect.generation, effect.code, effect.reason);
        return;
      case 'destroyLink':
        parts.link.destroy(effect.generation);
        return;
      case 'probeBroker':
      case 'openSession':
      case 'closeSession':
      case 'enqueueOp':
      case 'cancelOp':
      case 'recallOp':
        parts.broker.perform(effect);
        return;
      case 'log':
        this.#unsaid.push(effect);
        return;
      case 'exit':
        this.stop();
        parts.onExit(effect.code);
        return;
    }
  }

  /** Signed at the last moment, so that the time in it is the time of sending. */
  #sayHello(parts: DriverParts, effect: Extract<Effect, { kind: 'sendHello' }>): void {
    const { settings, capabilities } = this.#state;
    const { generation } = effect;
    const fail = (message: string): void => {
      parts.link.destroy(generation);
      this.input({ kind: 'linkClosed', generation, code: 1006, reason: message });
    };
    let draft: RunnerDraft;
    try {
      draft = {
        type: 'hello',
        id: effect.id,
        payload: {
          protocolVersion: PROTOCOL_VERSION,
          auth: parts.identity.authFor(gatewayHostOf(parts.gateway.href), parts.wallMs()),
          capabilities: {
            protocolVersion: PROTOCOL_VERSION,
            agentVersion: settings.agentVersion,
            os: process.platform === 'darwin' ? 'darwin' : 'linux',
            arch: ARCHITECTURES[process.arch] ?? 'amd64',
            slots: settings.slots,
            ...capabilities,
            jobTypes: [...capabilities.jobTypes],
          },
          running: [...effect.running],
        },
      };
    } catch {
      parts.log('error', 'hello.failed', { reason: 'the identity file cannot be read any more' });
      fail('identity');
      return;
    }
    const written = writeOutbound(draft, 'runnerToGateway');
    if (written.ok) parts.link.send(generation, written.text);
    else {
      parts.log('error', 'hello.failed', { reason: written.detail });
      fail('hello');
    }
  }
}
