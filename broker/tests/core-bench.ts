/**
 * The core on a bench: no process, no socket, no disk; the clock stands still until a test moves it. Peers are names, what they are sent is
 * collected, records are kept in a map that {@link CoreBench.crash} starts a new core from.
 */
import { parseRequest, type Request, readEnvelopeText } from '@reelhost/protocol';
import {
  type Archive,
  type Core,
  connectionClosed,
  DEFAULT_SETTINGS,
  directoryFailed,
  directoryRemoved,
  endTurn,
  framesTaken,
  type Job,
  newCore,
  nextWakeMs,
  noRecords,
  peerConnected,
  requestReceived,
  restore,
  type Session,
  type Settings,
  timePassed,
} from '../src/core/index.js';
import { sameJson } from '../src/journal/json-equality.js';
import {
  executionOf,
  executionText,
  type JobRow,
  jobOf,
  STATE_NUMBER,
  scheduleOf,
  sessionOf,
} from '../src/journal/rows.js';

export interface Sent {
  readonly type: string;
  readonly request_id?: string;
  readonly [field: string]: unknown;
}

export class CoreBench {
  core: Core;
  readonly alive = new Set<number>();
  /** Ids of the session directories that were made. */
  readonly directories = new Set<string>();
  /** Whether directories cannot be made at present. */
  noDirectories = false;
  /** What each connection was sent, in order. */
  readonly sent = new Map<number, Sent[]>();
  /** Connections whose unfinished frame took too long. */
  readonly overdue: number[] = [];
  readonly events: { readonly event: string; readonly [field: string]: unknown }[] = [];
  readonly #jobs = new Map<string, JobRow>();
  readonly #sessions = new Map<string, Session>();
  readonly #schedules = new Map<string, { readonly row: Parameters<typeof scheduleOf>[0] }>();
  readonly #tombstones = new Set<string>();
  readonly #settings: Settings;
  #wall = 1_767_225_600_000;
  #mono = 1000;
  #ids = 0;
  #generation = 1;
  #nextConnection = 1;
  #nextRequest = 1;

  constructor(settings: Partial<Settings> = {}) {
    this.#settings = { ...DEFAULT_SETTINGS, ...settings };
    this.core = this.#newCore();
  }

  get wall(): number {
    return this.#wall;
  }

  /** A connection that has said hello. */
  connect(hello: Record<string, unknown>): number {
    const id = this.#nextConnection++;
    this.sent.set(id, []);
    this.#tick();
    peerConnected(this.core, id);
    this.request(id, 'hello', { runtime_id: `peer-${id}`, ...hello });
    return id;
  }

  client(fields: Record<string, unknown> = {}): number {
    return this.connect({ mode: 'client', max_concurrency: 0, extensions: ['reelhost.1'], ...fields });
  }

  worker(
    tasks: readonly string[],
    fields: Record<string, unknown> = {},
    declarations?: Record<string, unknown>,
  ): number {
    const id = this.connect({ mode: 'worker', max_concurrency: 1, extensions: ['reelhost.1'], ...fields });
    this.request(id, 'register_tasks', { tasks, ...(declarations === undefined ? {} : { declarations }) });
    return id;
  }

  /** A plain Tay worker. */
  plainWorker(tasks: readonly string[], fields: Record<string, unknown> = {}): number {
    return this.worker(tasks, { extensions: [], ...fields });
  }

  /** Sends a request, runs the turn, and answers the reply with its id, if there is one already. */
  request(connection: number, type: string, fields: Record<string, unknown> = {}): Sent {
    const requestId = `t${this.#nextRequest++}`;
    this.send(connection, type, fields, requestId);
    this.turn();
    const inbox = this.sent.get(connection) ?? [];
    const at = inbox.findIndex((message) => message.request_id === requestId);
    return at < 0 ? { type: 'none' } : (inbox.splice(at, 1)[0] as Sent);
  }

  send(connection: number, type: string, fields: Record<string, unknown>, requestId = `t${this.#nextRequest++}`): void {
    const peer = this.core.peers.get(connection);
    if (peer === undefined) throw new Error(`connection ${connection} is closed`);
    const context = peer.extension ? this.core.contexts.extended : this.core.contexts.plain;
    const text = JSON.stringify({ version: 1, type, request_id: requestId, ...fields });
    const envelope = readEnvelopeText(text, context.json);
    if (!envelope.ok) throw new Error(`bad frame ${text}`);
    const parsed = parseRequest(envelope.envelope, context);
    if (!parsed.ok) throw new Error(`${type} was refused: ${parsed.refusal.message}`);
    this.#tick();
    const request: Request = parsed.request;
    let body = 0;
    if (request.type === 'succeeded') body = Buffer.byteLength(request.result.text);
    else if (request.type === 'enqueue') body = Buffer.byteLength(request.args.text);
    requestReceived(this.core, peer, { request, bodyBytes: body });
  }

  /** Takes the next message of a type out of a connection's inbox. */
  take(connection: number, type: string): Sent {
    const inbox = this.sent.get(connection) ?? [];
    const at = inbox.findIndex((message) => message.type === type);
    if (at < 0) throw new Error(`no ${type} for ${connection}: ${JSON.stringify(inbox)}`);
    return inbox.splice(at, 1)[0] as Sent;
  }

  has(connection: number, type: string): boolean {
    return (this.sent.get(connection) ?? []).some((message) => message.type === type);
  }

  /** The ids of the next execute. */
  execute(connection: number): { readonly reservation_id: string; readonly execution_id: string } {
    const message = this.take(connection, 'execute');
    return { reservation_id: message['reservation_id'] as string, execution_id: message['execution_id'] as string };
  }

  enqueue(
    client: number,
    task: string,
    options: Record<string, unknown> = {},
    more: Record<string, unknown> = {},
  ): string {
    const answer = this.request(client, 'enqueue', { task, args: {}, options, ...more });
    if (answer.type !== 'enqueued') throw new Error(JSON.stringify(answer));
    return answer['job_id'] as string;
  }

  status(client: number, jobId: string): Record<string, unknown> {
    return this.request(client, 'status', { job_id: jobId })['job'] as Record<string, unknown>;
  }

  disconnect(connection: number): void {
    this.#tick();
    connectionClosed(this.core, connection);
    this.turn();
  }

  /** Bytes of an unfinished frame came; `begun`: it is the first of them, or a whole frame came before it. */
  partial(connection: number, begun: boolean): void {
    this.#progress(connection, true, begun);
  }

  /** Everything that came was taken. */
  whole(connection: number): void {
    this.#progress(connection, false, true);
  }

  #progress(connection: number, unfinished: boolean, begun: boolean): void {
    const peer = this.core.peers.get(connection);
    if (peer === undefined) throw new Error(`connection ${connection} is closed`);
    this.#tick();
    framesTaken(this.core, peer, unfinished, begun);
  }

  /** Lets time pass, waking the core whenever it wants to be woken. `wallMs` moves the wall clock by another amount. */
  pass(ms: number, wallMs = ms): void {
    const end = this.#mono + ms;
    this.#wall += wallMs - ms;
    for (;;) {
      const wake = nextWakeMs(this.core, { wall: this.#wall, mono: this.#mono });
      const step = Math.min(end - this.#mono, wake ?? Number.POSITIVE_INFINITY);
      this.#mono += step;
      this.#wall += step;
      timePassed(this.core, { wall: this.#wall, mono: this.#mono });
      this.turn();
      if (this.#mono >= end) return;
    }
  }

  /** Ends the turn: records become durable, effects are carried out. */
  turn(): void {
    endTurn(this.core);
    const { records } = this.core;
    for (const id of records.forgottenSchedules) this.#schedules.delete(id);
    for (const id of records.forgottenSessions) this.#sessions.delete(id);
    for (const job of records.jobs) this.#saveJob(job);
    for (const session of records.sessions) {
      this.#sessions.set(session.id, session);
      session.touched = false;
      session.stored = true;
    }
    for (const schedule of records.schedules) {
      schedule.touched = false;
      const { id, definition, nextAt, lastAt, cancelledAt, lastJobId } = schedule;
      this.#schedules.set(id, {
        row: {
          id,
          definition: JSON.stringify(definition),
          next_at: nextAt,
          last_at: lastAt,
          cancelled_at: cancelledAt,
          last_job_id: lastJobId,
        },
      });
    }
    for (const id of records.tombstones) this.#tombstones.add(id);
    this.core.records = noRecords();
    const { effects } = this.core;
    this.core.effects = [];
    const removed: string[] = [];
    for (const effect of effects) {
      if (effect.kind === 'send') this.#deliver(effect.to, effect.text);
      else if (effect.kind === 'execute')
        this.#deliver(effect.to, effect.head + (effect.job.args ?? '{}') + effect.tail);
      else if (effect.kind === 'makeSessionDirectory') this.#makeDirectory(effect.sessionId, effect.to, effect.done);
      else if (effect.kind === 'removeSessionDirectory') removed.push(effect.sessionId);
      else if (effect.kind === 'frameOverdue') this.overdue.push(effect.to);
      else if (effect.kind === 'log') this.events.push({ event: effect.event, ...effect.fields });
    }
    for (const id of removed) directoryRemoved(this.core, id);
    if (removed.length > 0) this.turn();
  }

  /** The broker dies at once and starts again from what was durable; time passes meanwhile. */
  crash(downMs = 10): void {
    this.#wall += downMs;
    this.#mono += downMs;
    this.#generation++;
    this.sent.clear();
    this.core = this.#newCore();
    const unfinished = [...this.#jobs.values()].filter((row) => row.completed_at === null);
    const sessions = [...this.#sessions.values()].filter((session) => session.state !== 'closed');
    restore(this.core, {
      jobs: unfinished.map((row) => ({
        job: jobOf(row),
        execution: executionOf(row),
      })),
      sessions: sessions.map((session) => {
        const { id, task, labels, state, runtimeId, runtimePid, lostAt, openedAt, closedAt, stopped } = session;
        const again = sessionOf({
          id,
          task,
          labels,
          state,
          runtime_id: runtimeId,
          runtime_pid: runtimePid,
          lost_at: lostAt,
          opened_at: openedAt,
          closed_at: closedAt,
          stopped: stopped ? 1 : 0,
        });
        again.kept.push(...session.kept);
        return again;
      }),
      schedules: [...this.#schedules.values()].map((stored) => scheduleOf(stored.row)),
    });
    this.turn();
  }

  #makeDirectory(sessionId: string, to: number, done: string): void {
    if (this.noDirectories) return directoryFailed(this.core, sessionId);
    this.directories.add(sessionId);
    this.#deliver(to, done);
  }

  #deliver(to: number, text: string): void {
    this.sent.get(to)?.push(JSON.parse(text) as Sent);
  }

  #saveJob(job: Job): void {
    job.touched = false;
    job.stored = true;
    this.#jobs.set(job.id, {
      seq: job.seq,
      id: job.id,
      task: job.task,
      queue: job.queue,
      state: STATE_NUMBER[job.state] as number,
      attempt: job.attempt,
      max_attempts: job.maxAttempts,
      timeout_ms: job.timeoutMs,
      delay_ms: job.delayMs,
      run_at: job.runAt,
      created_at: job.createdAt,
      due_at: job.dueAt,
      interruptions: job.interruptions,
      session_id: job.sessionId,
      needs_secrets: job.secrets === 'none' ? 0 : 1,
      execution: executionText(job),
      error: job.error === null ? null : JSON.stringify(job.error),
      args_bytes: job.argsBytes,
      args: job.args,
      end_state: job.completedAt === null ? null : (STATE_NUMBER[job.state] as number),
      completed_at: job.completedAt,
      end_error: job.error === null ? null : JSON.stringify(job.error),
      result_bytes: job.resultBytes,
      result: job.result,
    });
  }

  #tick(): void {
    this.core.now = { wall: this.#wall, mono: this.#mono };
  }

  #newCore(): Core {
    const archive: Archive = {
      findJob: (id) =>
        this.#tombstones.has(id) ? 'expired' : this.#jobs.has(id) ? jobOf(this.#jobs.get(id) as JobRow) : null,
      readArgs: (job) => job.args ?? '{}',
      readResult: (job) => job.result,
      findSession: (id) => this.#sessions.get(id) ?? null,
      listJobs: () => ({ jobs: [], nextCursor: null }),
      listSessions: () => ({ sessions: [], nextCursor: null }),
      facts: () => ({ durability: 'full', bytes: 0, walBytes: 0, finished: {}, setAside: null, lost: null }),
      isProcessAlive: (pid) => this.alive.has(pid),
      sessionDirectory: (id) => `/sessions/${id}`,
      readOp: (args) => (JSON.parse(args) as { op?: string }).op ?? null,
      sameJson,
    };
    const entropy = {
      jobId: () => (++this.#ids).toString(16).padStart(32, '0'),
      submissionJobId: (id: string) => Buffer.from(id.padEnd(16, '.')).toString('hex').slice(0, 32),
      occurrenceJobId: (id: string, due: number) =>
        Buffer.from(`${id}:${due}`.padEnd(16, '.')).toString('hex').slice(-32),
      token: () => `token-${++this.#ids}`,
      upTo: () => 0,
    };
    const identity = { version: '0.0.0', instance: 'i0', generation: this.#generation };
    return newCore(
      this.#settings,
      identity,
      archive,
      entropy,
      { wall: this.#wall, mono: this.#mono },
      this.#jobs.size + 1,
    );
  }
}
