/**
 * Carries out what core/supervision.ts decides: starts the parts, each in a process group of its own, ends what a dead one left there, wakes up for
 * restarts, and stops everything in order (bridge, executors, broker). It never decides whether to restart.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  beginPart,
  type PartEffect,
  type PartInput,
  type PartState,
  policyForExecutors,
  type RestartPolicy,
  stepPart,
} from '../core/supervision.js';
import type { UpLog } from './log.js';
import type { PartKind, PartPlan } from './plan.js';

/** A part as others see it. */
export interface PartView {
  readonly name: string;
  readonly kind: PartKind;
  readonly state: PartState;
}

/** What the supervisor needs from outside. */
export interface SupervisorSurroundings {
  readonly clock: () => number;
  readonly log: UpLog;
  /** Called after every change. */
  readonly onChange: (parts: readonly PartView[]) => void;
  /** Called when a part without which nothing works is given up. */
  readonly onVitalFailure: (part: PartView) => void;
}

interface Part {
  readonly plan: PartPlan;
  state: PartState;
  child: ChildProcess | undefined;
  timer: NodeJS.Timeout | undefined;
  readonly stopped: Promise<void>;
  readonly resolveStopped: () => void;
}

const STOP_ORDER: readonly PartKind[] = ['bridge', 'executor', 'broker'];
/** In a hurry (second signal), a part gets this long, in milliseconds. */
const HURRY_MS = 3_000;

/** Keeps the given parts running until told to stop. */
export class Supervisor {
  readonly #parts: Part[] = [];
  readonly #policy: RestartPolicy;
  readonly #around: SupervisorSurroundings;
  #hurry = false;

  constructor(policy: RestartPolicy, around: SupervisorSurroundings) {
    this.#policy = policy;
    this.#around = around;
  }

  /** Starts every part, in the order given. */
  start(plans: readonly PartPlan[]): void {
    for (const plan of plans) {
      const first = beginPart(this.#around.clock(), this.#policyFor(plan));
      let resolveStopped = (): void => {};
      const stopped = new Promise<void>((resolve) => {
        resolveStopped = resolve;
      });
      const part: Part = { plan, state: first.state, child: undefined, timer: undefined, stopped, resolveStopped };
      this.#parts.push(part);
      this.#carryOut(part, first.effects);
    }
    this.#changed();
  }

  /** Every part and where it stands. */
  get parts(): PartView[] {
    return this.#parts.map((part) => ({ name: part.plan.name, kind: part.plan.kind, state: part.state }));
  }

  /** Stops one kind after the other; resolves when the last process is gone. */
  async stop(): Promise<void> {
    for (const kind of STOP_ORDER) {
      const parts = this.#parts.filter((part) => part.plan.kind === kind);
      for (const part of parts) this.#input(part, { type: 'stopRequested' });
      await Promise.all(parts.map((part) => part.stopped));
    }
  }

  /** A second signal: whatever still runs is asked again, and ended soon after. */
  hurry(): void {
    this.#hurry = true;
    for (const part of this.#parts) {
      if (part.state.phase !== 'stopping' || part.state.pid === null) continue;
      signal(part.state.pid, 'SIGTERM');
      this.#endLater(part, part.state.pid, HURRY_MS);
    }
  }

  #policyFor(plan: PartPlan): RestartPolicy {
    return plan.kind === 'executor' ? policyForExecutors(this.#policy) : this.#policy;
  }

  #input(part: Part, input: PartInput): void {
    const step = stepPart(part.state, input, this.#around.clock(), this.#policyFor(part.plan));
    part.state = step.state;
    this.#carryOut(part, step.effects);
    this.#changed();
  }

  #carryOut(part: Part, effects: readonly PartEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case 'spawn':
          this.#spawn(part);
          break;
        case 'wakeAt':
          clearTimeout(part.timer);
          part.timer = setTimeout(() => this.#input(part, { type: 'timeElapsed' }), effect.at - this.#around.clock());
          break;
        case 'terminate':
          signal(effect.pid, 'SIGTERM');
          this.#endLater(part, effect.pid, this.#hurry ? HURRY_MS : part.plan.stopWithinMs);
          break;
        case 'reapGroup':
          clearTimeout(part.timer);
          signal(-effect.pid, 'SIGKILL');
          break;
        case 'settled':
          clearTimeout(part.timer);
          this.#settled(part, effect.outcome);
          break;
      }
    }
  }

  #spawn(part: Part): void {
    const { plan } = part;
    const child = spawn(plan.file, plan.args, {
      cwd: plan.workingDir,
      detached: true,
      env: { ...plan.env },
      // Standard input is the pipe whose end tells a child that `up` is gone. See parent-pipe.ts.
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    part.child = child;
    child.once('error', (error) => {
      if (child.pid === undefined) this.#input(part, { type: 'spawnFailed', message: error.message });
    });
    child.stdin?.on('error', () => {}); // A dead child's pipe: its exit says everything.
    child.once('exit', (code, signalName) => {
      if (part.state.phase !== 'stopping') {
        this.#around.log('warn', 'up.part_died', { part: plan.name, pid: child.pid, code, signal: signalName });
      }
      this.#input(part, { type: 'exited', code, signal: signalName });
      if (part.state.phase === 'waiting') {
        const pauseMs = part.state.until - this.#around.clock();
        this.#around.log('info', 'up.part_restarts', { part: plan.name, pauseMs, restarts: part.state.restarts + 1 });
      }
    });
    // The id of a child is known at once, but its state is only complete after this turn.
    if (child.pid !== undefined) {
      const { pid } = child;
      this.#around.log('info', 'up.part_started', { part: plan.name, pid });
      queueMicrotask(() => this.#input(part, { type: 'started', pid }));
    }
  }

  #settled(part: Part, outcome: 'failed' | 'stopped'): void {
    part.child?.stdin?.destroy();
    if (outcome === 'stopped') {
      this.#around.log('info', 'up.part_stopped', { part: part.plan.name });
    } else if (part.state.phase === 'failed') {
      this.#around.log('error', 'up.part_given_up', { part: part.plan.name, reason: part.state.reason });
      const view = { name: part.plan.name, kind: part.plan.kind, state: part.state };
      if (part.plan.vital) queueMicrotask(() => this.#around.onVitalFailure(view));
      return; // A stop turns it into "stopped".
    }
    part.resolveStopped();
  }

  #endLater(part: Part, pid: number, afterMs: number): void {
    clearTimeout(part.timer);
    part.timer = setTimeout(() => {
      this.#around.log('warn', 'up.part_ended_by_force', { part: part.plan.name, pid, afterMs });
      signal(-pid, 'SIGKILL');
      signal(pid, 'SIGKILL');
    }, afterMs);
  }

  #changed(): void {
    this.#around.onChange(this.parts);
  }
}

/** Sends a signal; a process or group that is gone already is no error. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // EPERM: on macOS, a group of which only zombies are left.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}
