/**
 * The driver: turns bytes into inputs of the core and its effects into bytes.
 *
 * One turn: everything that has arrived becomes inputs → (setImmediate) the core starts jobs → all records are committed in one transaction → the
 * journal's log is flushed to the disk → all effects are carried out in order → one write per connection. While the disk is at work, inputs are taken in: what
 * arrives meanwhile is the next turn, and when it is worth a commit it goes to the disk too: never more than two are there, and they are told in order. A
 * record that cannot be written holds back the effects of its turn, never the process.
 */
import type { Socket } from 'node:net';
import type { Clock } from './clock.js';
import {
  type Core,
  connectionClosed,
  type Effect,
  endTurn,
  isNothing,
  nextWakeMs,
  noRecords,
  peerConnected,
  timePassed,
} from './core/index.js';
import { CrashPoint } from './crash-point.js';
import { type Disk, DiskQueue } from './disk-queue.js';
import { framesPerTurn, takeFrames } from './intake.js';
import type { Journal } from './journal/journal.js';
import { answerWaiting } from './late-replies.js';
import type { Logger } from './log.js';
import { Performer } from './performer.js';
import { Connection } from './socket/connection.js';
import type { SessionDirectories } from './state/session-directories.js';
import { UnreadBound } from './unread-bound.js';

/** A timer that fires this much late means that the process was stopped: what came meanwhile is read before deadlines are judged. */
const STALL_MS = 500;
const STALL_GRACE_MS = 50;
/** When a commit that cannot succeed now is tried again. */
const COMMIT_RETRY_MS = 250;
/** A turn of so few jobs waits for a quick disk: nothing much would be done meanwhile. */
const FEW_JOBS = 2;
/** A turn that is so nearly as large as a turn can be goes to the disk while the last one is still there. */
const NEARLY_FULL = 0.75;
/** How long a stop waits for a last commit that does not succeed. */
const STOP_LIMIT_MS = 3000;
/** How often it is looked whether replies wait too long for the disk. */
const LATE_CHECK_MS = 1000;
/** The longest sleep, so that a step of the wall clock is noticed. */
const MAX_SLEEP_MS = 5000;

export interface BrokerParts {
  readonly core: Core;
  readonly journal: Pick<Journal, 'commit' | 'readArgs'> & { log(): Disk | null };
  readonly directories: SessionDirectories;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when a turn could not be committed; true when another attempt makes sense at once. */
  readonly onCommitFailed: (error: unknown) => boolean;
  /** Called with what no part of the broker expected, e.g. damage in the journal: the process must not go on. */
  readonly onBroken: (error: unknown) => void;
}

export class Broker {
  readonly core: Core;
  readonly #parts: BrokerParts;
  readonly #connections = new Map<number, Connection>();
  /** Connections with requests that are left for a later turn. */
  readonly #held = new Set<Connection>();
  readonly #performer: Performer;
  readonly #unread: UnreadBound;
  readonly #crash = CrashPoint.fromEnvironment(process.env);
  #nextConnection = 1;
  readonly #disk: Disk | null;
  #turnPlanned = false;
  #abandoned = false;
  readonly #atDisk: DiskQueue;
  /** A turn was asked for that has to wait for the disk. */
  #turnDue = false;
  /** Since when (monotonic ms) the turn that is not committed yet waits for the disk, or null. */
  #waitingSince: number | null = null;
  readonly #lateCheck: NodeJS.Timeout;
  /** Turns so far, to know which requests of a connection belong to the present one. */
  #turns = 0;
  /** The last turn could not be committed: nothing more is taken in until it is, or its answers would pile up. */
  #stuck = false;
  #timer: NodeJS.Timeout | null = null;
  #wakeAt = Number.POSITIVE_INFINITY;
  #onTurn: (() => void) | null = null;

  constructor(parts: BrokerParts) {
    this.core = parts.core;
    this.#parts = parts;
    this.#disk = parts.journal.log();
    this.#unread = new UnreadBound(parts.core, this.#connections, parts.log);
    this.#performer = new Performer(parts, this.#connections, this.#held, (input) => this.#input(input), this.#unread);
    this.#atDisk = new DiskQueue(
      (effects) => this.#safe(effects),
      (error) => this.#failed(error),
    );
    const everyMs = Math.min(LATE_CHECK_MS, Math.ceil(this.core.settings.replyTimeoutMs / 4));
    this.#lateCheck = setInterval(() => this.#guard(() => this.#answerLate()), everyMs);
  }

  /** Connections that are served. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Takes over an accepted socket. */
  accept(socket: Socket): void {
    const id = this.#nextConnection++;
    const connection = new Connection(id, socket, this.core.settings, () => this.#guard(() => this.#release()));
    this.#connections.set(id, connection);
    this.#input(() => peerConnected(this.core, id));
    socket.on('data', (chunk: Buffer) => this.#guard(() => this.#received(connection, chunk)));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#connections.delete(id);
      this.#held.delete(connection);
      this.#input(() => connectionClosed(this.core, id));
    });
  }

  /** Runs an input of the core at the present moment; the turn follows. */
  #input(input: () => void): void {
    this.core.now = this.#parts.clock.now();
    this.#guard(input);
    this.planTurn();
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#parts.onBroken(error);
    }
  }

  #received(connection: Connection, chunk: Buffer): void {
    connection.reader.push(chunk);
    this.#take(connection);
    this.#unread.received(chunk.length);
  }

  /** Handles what a connection has sent, or as much of it as fits into one turn. */
  #take(connection: Connection): void {
    const peer = this.core.peers.get(connection.id);
    if (peer === undefined || !connection.reading) return;
    if (this.#stuck) return this.#hold(connection);
    this.core.now = this.#parts.clock.now();
    if (takeFrames(this.core, connection, peer, this.#turns, this.#parts.log)) this.#hold(connection);
    this.planTurn();
  }

  #hold(connection: Connection): void {
    connection.pause();
    this.#held.add(connection);
  }

  /** Goes on with connections whose requests had to wait, unless their answers have not left yet. */
  #release(): void {
    for (const connection of [...this.#held]) {
      if (connection.congested) continue;
      this.#held.delete(connection);
      connection.resume();
      this.#take(connection);
    }
  }

  /** Asks for a turn at the end of this round of the event loop, or when the disk has confirmed the last one. */
  planTurn(): void {
    if (this.#mustWait) {
      this.#turnDue = true;
      this.#waitingSince ??= this.core.now.mono;
    } else if (!this.#turnPlanned) {
      this.#turnPlanned = true;
      setImmediate(() => this.#guard(() => this.#turn()));
    }
  }

  /** Whether the next turn waits for the disk. */
  get #mustWait(): boolean {
    const { core } = this;
    if (this.#atDisk.length !== 1) return this.#atDisk.length > 0;
    return core.records.jobs.length < NEARLY_FULL * framesPerTurn(core);
  }

  #turn(): void {
    this.#turnPlanned = false;
    if (this.#abandoned) return;
    // Planned while the last turn was told, and overtaken by the one that was due.
    if (this.#mustWait) return this.planTurn();
    this.#turnDue = false;
    const { core } = this;
    endTurn(core);
    const { records } = core;
    this.#crash?.observe(records);
    this.#crash?.pass('received');
    const written = !isNothing(records);
    if (written) {
      this.#stuck = !this.#commit();
      if (this.#stuck) {
        this.#waitingSince ??= this.#parts.clock.now().mono;
        setTimeout(() => this.planTurn(), COMMIT_RETRY_MS);
        return;
      }
    }
    this.#turns++;
    const { effects } = core;
    core.effects = [];
    if (written && this.#disk !== null) {
      if (records.jobs.length > FEW_JOBS || !this.#disk.isQuick) {
        this.#atDisk.add(this.#disk, effects, this.#waitingSince ?? core.now.mono);
        this.#waitingSince = null;
        return this.#releaseSoon();
      }
      this.#disk.now();
    }
    this.#tell(effects);
  }

  /** The disk has the oldest turn that was there. */
  #safe(effects: readonly Effect[]): void {
    if (this.#abandoned) return;
    this.#tell(effects);
    if (this.#turnDue) this.#turn();
  }

  #failed(error: unknown): void {
    if (!this.#abandoned) this.#parts.onBroken(error);
  }

  /** Goes on with connections that had to wait for the end of a turn, after what has arrived from others. */
  #releaseSoon(): void {
    if (this.#held.size > 0) setImmediate(() => this.#guard(() => this.#release()));
  }

  #tell(effects: readonly Effect[]): void {
    this.#crash?.pass('committed');
    for (const effect of effects) this.#performer.perform(effect);
    this.#performer.send();
    if (this.#held.size > 0) this.#release();
    this.#crash?.pass('sent');
    this.core.recent.trim();
    this.#armTimer();
    if (this.#turnDue || this.#stuck || this.#atDisk.length > 0) return;
    this.#waitingSince = null;
    this.#onTurn?.();
  }

  /** Answers what has waited too long for the disk, and lets producers go whose requests are not even read. See late-replies.ts. */
  #answerLate(): void {
    const since = this.#atDisk.waitingSince ?? this.#waitingSince;
    const waited = since === null ? 0 : this.#parts.clock.now().mono - since;
    if (since === null || waited < this.core.settings.replyTimeoutMs) return;
    const told = answerWaiting(this.core, this.#atDisk.turns, this.#connections, this.#held);
    if (told > 0) this.#parts.log.warn({ event: 'broker.replies_late', replies: told, waitedMs: Math.round(waited) });
  }

  #commit(): boolean {
    const { records } = this.core;
    for (;;) {
      try {
        this.#parts.journal.commit(records);
        break;
      } catch (error) {
        if (!this.#parts.onCommitFailed(error)) return false;
      }
    }
    for (const job of records.jobs) {
      job.stored = true;
      job.touched = false;
      if (!job.resident && job.args !== null && job.argsBytes > 2048) this.#letGo(job);
    }
    for (const session of records.sessions) {
      session.stored = true;
      session.touched = false;
    }
    for (const schedule of records.schedules) schedule.touched = false;
    this.core.records = noRecords();
    return true;
  }

  #letGo(job: Core['records']['jobs'][number]): void {
    if (this.core.jobs.has(job.id)) this.core.residentArgsBytes -= job.argsBytes;
    job.args = null;
  }

  #armTimer(): void {
    const now = this.#parts.clock.now();
    const wait = Math.min(nextWakeMs(this.core, now) ?? MAX_SLEEP_MS, MAX_SLEEP_MS);
    const at = now.mono + wait;
    if (this.#timer !== null && at >= this.#wakeAt) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#wakeAt = at;
    this.#timer = setTimeout(() => this.#guard(() => this.#wake()), wait);
  }

  #wake(): void {
    this.#timer = null;
    const now = this.#parts.clock.now();
    if (now.mono - this.#wakeAt > STALL_MS) {
      this.#parts.log.warn({ event: 'broker.stalled', lateMs: Math.round(now.mono - this.#wakeAt) });
      this.#wakeAt = now.mono + STALL_GRACE_MS;
      this.#timer = setTimeout(() => this.#guard(() => this.#wake()), STALL_GRACE_MS);
      return;
    }
    timePassed(this.core, now);
    this.planTurn();
  }

  /**
   * Takes no more work and resolves when what was decided is written and said, or when that could not be written in time: a full disk must not keep
   * the process alive, and nobody has heard of what is not written.
   */
  async stop(): Promise<void> {
    this.core.draining = true;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, STOP_LIMIT_MS);
      this.#onTurn = () => {
        clearTimeout(timer);
        resolve();
      };
      this.planTurn();
    });
    this.#onTurn = null;
    for (const connection of this.#connections.values()) connection.end();
  }

  /** Lets everything go at once; what is not committed is not done. */
  abandon(): void {
    this.#abandoned = true;
    clearInterval(this.#lateCheck);
    if (this.#timer !== null) clearTimeout(this.#timer);
    for (const connection of this.#connections.values()) connection.end();
  }
}
