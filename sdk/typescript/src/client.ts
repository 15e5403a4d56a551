/**
 * A producer's connection to the broker: it enqueues jobs and learns their outcomes, opens sessions, watches executors.
 *
 * It reconnects by itself. Requests that may be said twice are said again after a cut, watches are renewed, so that an outcome
 * reaches its handle across a restart of the broker. Every enqueue carries a job id, its own or one made here: repeating it can not
 * make a second job.
 */
import { randomBytes } from 'node:crypto';
import {
  type Envelope,
  EXTENSION,
  encode,
  type Inspectable,
  type JsonValue,
  MAX_WATCHED_JOBS,
  type MessageFields,
  readPush,
  readWireError,
  submissionJobId,
} from '@reelhost/protocol';
import { type EnqueueRequest, enqueueFields, type ScheduleRequest, scheduleFields } from './client-requests.js';
import {
  completed,
  type JobInfo,
  type JobOutcome,
  outcomeError,
  type RuntimeInfo,
  readJob,
  readRuntimes,
  readScheduleInfo,
  readSession,
  type ScheduleInfo,
  type SessionInfo,
} from './client-views.js';
import { type RequestEffect, RequestTable } from './core/request-table.js';
import { Deferred } from './deferred.js';
import { BrokerError } from './errors.js';
import type { EventListener } from './executor.js';
import { type ConnectionTerms, IDLE_TERMS, readHelloOk } from './hello-reply.js';
import { type CancelReply, type JobHandle, WatchedJob } from './job-handle.js';
import { LatestValues } from './latest-values.js';
import { Link, type LinkOwner } from './link.js';
import { pollOutcome } from './outcome-poll.js';
import { resolveSocketPath } from './socket-path.js';

/** How a client is set up. */
export interface ClientOptions {
  /** Default: found as `resolveSocketPath` says. */
  readonly socketPath?: string | undefined;
  /** Default: `client-<pid>`. */
  readonly runtimeId?: string | undefined;
  /** Name and version, for the broker's log. */
  readonly software?: string | undefined;
  readonly onEvent?: EventListener | undefined;
  /** How long `connect` waits for the first handshake; default 5,000. `Infinity` waits for a broker that is not there yet. */
  readonly connectTimeoutMs?: number | undefined;
  /** How long a request waits for its reply, reconnects included; default 30,000. */
  readonly requestTimeoutMs?: number | undefined;
}

/** Where to look with `inspect`. */
export interface InspectQuery {
  readonly id?: string | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  readonly state?: string | undefined;
}

const PASSING: ReadonlySet<string> = new Set([
  'unavailable',
  'connection_closed',
  'capacity',
  'disk_full',
  'request_timeout',
]);

/** A connection to a broker. */
export class BrokerClient implements LinkOwner {
  readonly #options: ClientOptions;
  readonly #link: Link;
  readonly #requests = new RequestTable();
  readonly #waiting = new Map<string, { readonly reply: Deferred<Envelope>; readonly timer: NodeJS.Timeout }>();
  readonly #jobs = new Map<string, WatchedJob>();
  readonly #connected = new Deferred<void>();
  #registry: LatestValues<RuntimeInfo[]> | undefined;
  #terms: ConnectionTerms = IDLE_TERMS;
  #helloId = '';
  #lastRequest = 0;
  #lastFailure: unknown;
  #closed = false;

  private constructor(options: ClientOptions) {
    this.#options = options;
    this.#link = new Link(resolveSocketPath(options.socketPath), this);
  }

  /**
   * Connects to the broker.
   * @throws BrokerError `not_running` when nobody listens, `connect_timeout` when no handshake came about in time
   * @throws InvalidSocketPath
   */
  static async connect(options: ClientOptions = {}): Promise<BrokerClient> {
    const client = new BrokerClient(options);
    const limitMs = options.connectTimeoutMs ?? 5_000;
    const timer = Number.isFinite(limitMs) ? setTimeout(() => client.#giveUp(limitMs), limitMs) : undefined;
    client.#link.input({ type: 'started' });
    try {
      await client.#connected.promise;
      return client;
    } finally {
      clearTimeout(timer);
    }
  }

  /** What the present connection agreed on. */
  get terms(): ConnectionTerms {
    return this.#terms;
  }

  /** Whether there is a connection at this moment; requests wait for one. */
  get isConnected(): boolean {
    return this.#link.phase === 'up';
  }

  /** Makes a job, or finds the one that has this id. @throws BrokerError */
  async enqueue(request: EnqueueRequest): Promise<JobHandle> {
    const made = request.id ?? (request.submissionId === undefined ? randomBytes(16).toString('hex') : undefined);
    const jobId = made ?? submissionJobId(request.submissionId ?? '');
    const known = this.#jobs.has(jobId);
    const watched = this.#watched(jobId);
    watched.enqueuing += 1;
    try {
      if (request.sessionId !== undefined || request.secrets !== undefined)
        this.#requireExtension('sessions and secrets');
      const reply = await this.#request('enqueue', enqueueFields(request, made, this.#terms.extension), true);
      this.#pollIfPlain(watched);
      return this.#handle(watched, readJob(reply), reply.value('conflict') === true);
    } catch (error) {
      if (!known) {
        this.#jobs.delete(jobId);
        watched.fail(error);
      }
      throw error;
    } finally {
      watched.enqueuing -= 1;
    }
  }

  /** Follows a job that was enqueued before. */
  attach(jobId: string): JobHandle {
    const known = this.#jobs.has(jobId);
    const watched = this.#watched(jobId);
    if (!known && this.isConnected) this.#renewWatches([jobId]);
    return this.#handle(watched, undefined, false);
  }

  /** A job as it is now. @throws BrokerError */
  async status(jobId: string): Promise<JobInfo> {
    return readJob(await this.#request('status', { job_id: jobId }, true));
  }

  /** The result of a completed job. @throws BrokerError `result_not_ready`, `task_failed`, `job_cancelled`, `not_found` … */
  async result(jobId: string): Promise<{ readonly result: JsonValue; readonly resultJson: string }> {
    const resultJson = (await this.#request('result', { job_id: jobId }, true)).raw('result') ?? 'null';
    return { result: JSON.parse(resultJson) as JsonValue, resultJson };
  }

  /** Cancels a job; with `waitMs` the reply waits for the executor to end it. @throws BrokerError `cancel_rejected` … */
  async cancel(jobId: string, options: { readonly waitMs?: number | undefined } = {}): Promise<CancelReply> {
    const reply = await this.#request('cancel', { job_id: jobId, wait_ms: options.waitMs }, true, options.waitMs);
    const stopped = reply.value('stopped');
    return { job: readJob(reply), stopped: typeof stopped === 'boolean' ? stopped : undefined };
  }

  /** Opens a session, or finds the open one that has this id. @throws BrokerError */
  async openSession(session: {
    readonly sessionId: string;
    readonly task: string;
    readonly labels?: Readonly<Record<string, string>> | undefined;
  }): Promise<SessionInfo> {
    const { sessionId, task, labels } = session;
    const reply = await this.#extended('open_session', { session_id: sessionId, task, labels });
    return readSession(reply);
  }

  /** Closes a session and removes its directory. @throws BrokerError */
  async closeSession(
    sessionId: string,
    options: { readonly graceMs?: number | undefined } = {},
  ): Promise<{ readonly session: SessionInfo; readonly stopped: boolean }> {
    const fields = { session_id: sessionId, grace_ms: options.graceMs };
    const reply = await this.#extended('close_session', fields, options.graceMs ?? 8_000);
    return { session: readSession(reply), stopped: reply.value('stopped') === true };
  }

  /** The executors, now and after every change. A slow reader sees the latest. */
  watchRegistry(): AsyncIterable<RuntimeInfo[]> {
    if (this.#registry === undefined) {
      this.#registry = new LatestValues<RuntimeInfo[]>();
      if (this.isConnected) this.#watchRegistryNow();
    }
    return this.#registry;
  }

  /** A page of the broker's state. @throws BrokerError */
  async inspect(
    what: Inspectable,
    query: InspectQuery = {},
  ): Promise<{ readonly data: JsonValue; readonly nextCursor: string | null }> {
    const { id, limit, cursor, state } = query;
    const reply = await this.#extended('inspect', { what, id, limit, cursor, state });
    const next = reply.value('next_cursor');
    return { data: reply.value('data') ?? null, nextCursor: typeof next === 'string' ? next : null };
  }

  /** Declares a schedule; the same declaration id replaces it. @throws BrokerError */
  async schedule(request: ScheduleRequest): Promise<ScheduleInfo> {
    const repeatable = request.declarationId !== undefined;
    return readScheduleInfo(await this.#request('schedule', scheduleFields(request), repeatable));
  }

  /** Ends a schedule. @throws BrokerError */
  async cancelSchedule(scheduleId: string): Promise<ScheduleInfo> {
    return readScheduleInfo(await this.#request('cancel_schedule', { schedule_id: scheduleId }, true));
  }

  /** Disconnects. Jobs go on; outcomes not yet known are rejected with `client_closed`. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#link.stop();
  }

  // The link's owner.

  greet(): void {
    this.#helloId = this.#requestId();
    const runtime_id = this.#options.runtimeId ?? `client-${process.pid}`;
    const { software } = this.#options;
    const more = { extensions: [EXTENSION], pid: process.pid, software };
    this.#link.send(encode('hello', this.#helloId, { mode: 'client', runtime_id, max_concurrency: 0, ...more }));
  }

  prepare(): void {
    this.#link.input({ type: 'prepared' });
  }

  up(): void {
    const renewed = [...this.#jobs.values()].filter((job) => job.enqueuing === 0).map((job) => job.jobId);
    this.#perform(this.#requests.linkUp());
    if (renewed.length > 0) this.#renewWatches(renewed);
    if (this.#registry !== undefined) this.#watchRegistryNow();
    this.#event('client.connected', { extension: this.#terms.extension });
    this.#connected.resolve();
  }

  down(reason: unknown): void {
    this.#lastFailure = reason;
    this.#event('client.disconnected', { reason: reason instanceof Error ? reason.message : String(reason) });
    this.#perform(this.#requests.linkDown());
  }

  end(reason: unknown): void {
    this.#closed = true;
    const error = reason ?? new BrokerError('client_closed', 'the client was closed');
    this.#connected.reject(error);
    for (const requestId of [...this.#waiting.keys()]) this.#fail(requestId, error);
    for (const job of this.#jobs.values()) job.fail(error);
    this.#jobs.clear();
    this.#registry?.end(reason);
  }

  message(envelope: Envelope): void {
    const push = readPush(envelope);
    if (push === undefined) {
      this.#replied(envelope);
      return;
    }
    switch (push.type) {
      case 'job_settled': {
        const outcome: JobOutcome =
          push.state === 'completed'
            ? completed(push.result.text)
            : { state: push.state, error: outcomeError(push.error) };
        this.#settle(push.job_id, outcome);
        return;
      }
      case 'job_progress':
        this.#jobs.get(push.job_id)?.progress.push(push.progress);
        return;
      case 'registry_changed':
        this.#registry?.push(readRuntimes(envelope));
        return;
      case 'ping':
        this.#link.send(encode('pong', this.#requestId(), { ping_id: push.ping_id }));
        return;
      case 'execute':
      case 'cancel_execution':
        return;
    }
  }

  #replied(envelope: Envelope): void {
    const id = envelope.requestId;
    if (id === this.#helloId) {
      this.#helloId = '';
      this.#greeted(envelope);
      return;
    }
    if (!this.#requests.close(id)) return;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    clearTimeout(waiting?.timer);
    if (envelope.type === 'error') waiting?.reply.reject(refusal(envelope));
    else waiting?.reply.resolve(envelope);
  }

  #greeted(envelope: Envelope): void {
    if (envelope.type === 'error') {
      const error = refusal(envelope);
      this.#link.input({ type: 'refused', retryable: PASSING.has(error.code), reason: error });
      return;
    }
    this.#terms = readHelloOk(envelope);
    if (this.#terms.extension) this.#link.allowLargeFrames(this.#terms.maxFrameBytes);
    this.#link.input({ type: 'greeted' });
  }

  #giveUp(limitMs: number): void {
    const cause = this.#lastFailure;
    const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
    const error =
      code === 'ENOENT' || code === 'ECONNREFUSED'
        ? new BrokerError('not_running', 'no broker listens at the socket', { cause })
        : new BrokerError('connect_timeout', `no handshake with the broker within ${limitMs} ms`, { cause });
    this.#connected.reject(error);
    void this.close();
  }

  #request(type: string, fields: MessageFields, repeatable: boolean, extraMs: number = 0): Promise<Envelope> {
    if (this.#closed) return Promise.reject(new BrokerError('client_closed', 'the client was closed'));
    const id = this.#requestId();
    const reply = new Deferred<Envelope>();
    const limitMs = (this.#options.requestTimeoutMs ?? 30_000) + extraMs;
    const late = (): void =>
      this.#fail(id, new BrokerError('request_timeout', `no reply to ${type} within ${limitMs} ms`));
    this.#waiting.set(id, { reply, timer: setTimeout(late, limitMs) });
    this.#perform(this.#requests.add(id, encode(type, id, fields), repeatable));
    return reply.promise;
  }

  async #extended(type: string, fields: MessageFields, extraMs: number = 0): Promise<Envelope> {
    this.#requireExtension(type);
    return this.#request(type, fields, true, extraMs);
  }

  #requireExtension(what: string): void {
    if (!this.isConnected || this.#terms.extension) return;
    throw new BrokerError('not_supported', `the broker does not speak ${EXTENSION}, which is needed for ${what}`);
  }

  #fail(requestId: string, error: unknown): void {
    this.#requests.close(requestId);
    const waiting = this.#waiting.get(requestId);
    this.#waiting.delete(requestId);
    clearTimeout(waiting?.timer);
    waiting?.reply.reject(error);
  }

  #perform(effects: readonly RequestEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case 'send':
          this.#link.send(effect.text);
          break;
        case 'unknownOutcome':
          this.#fail(
            effect.requestId,
            new BrokerError('unknown_outcome', 'the connection was cut before the reply; the broker may have acted'),
          );
          break;
      }
    }
  }

  #watched(jobId: string): WatchedJob {
    const known = this.#jobs.get(jobId);
    if (known !== undefined && !known.settled) return known;
    const job = new WatchedJob(jobId);
    this.#jobs.set(jobId, job);
    return job;
  }

  #handle(watched: WatchedJob, job: JobInfo | undefined, conflict: boolean): JobHandle {
    return {
      jobId: watched.jobId,
      job,
      conflict,
      outcome: watched.outcome.promise,
      progress: () => watched.progress,
      cancel: (options) => this.cancel(watched.jobId, options),
    };
  }

  #settle(jobId: string, outcome: JobOutcome): void {
    const job = this.#jobs.get(jobId);
    this.#jobs.delete(jobId);
    job?.settle(outcome);
  }

  #renewWatches(jobIds: readonly string[]): void {
    if (!this.#terms.extension) {
      for (const jobId of jobIds) this.#pollIfPlain(this.#watched(jobId));
      return;
    }
    for (let at = 0; at < jobIds.length; at += MAX_WATCHED_JOBS) {
      const job_ids = jobIds.slice(at, at + MAX_WATCHED_JOBS);
      void this.#request('watch', { job_ids }, false).then(
        (reply) => this.#watchAnswered(reply),
        // Cut or refused: the next connection asks again.
        (error: unknown) => {
          this.#event('watch.failed', { reason: String(error) });
          if (error instanceof BrokerError && error.code === 'request_timeout' && this.isConnected) {
            this.#renewWatches(job_ids.filter((jobId) => this.#jobs.has(jobId)));
          }
        },
      );
    }
  }

  #watchAnswered(reply: Envelope): void {
    const unknown = reply.value('unknown');
    for (const jobId of Array.isArray(unknown) ? unknown : []) {
      const job = this.#jobs.get(String(jobId));
      // An enqueue that is being said again right now will make the job known.
      if (job === undefined || job.enqueuing > 0) continue;
      this.#jobs.delete(job.jobId);
      job.fail(new BrokerError('not_found', 'the broker does not know this job'));
    }
  }

  #pollIfPlain(watched: WatchedJob): void {
    if (this.#terms.extension || watched.settled || watched.polled) return;
    watched.polled = true;
    void pollOutcome(this, watched.jobId, () => watched.settled || this.#closed).then(
      (outcome) => outcome !== undefined && this.#settle(watched.jobId, outcome),
      (error: unknown) => {
        this.#jobs.delete(watched.jobId);
        watched.fail(error);
      },
    );
  }

  #watchRegistryNow(): void {
    if (!this.#terms.extension) {
      this.#registry?.end(new BrokerError('not_supported', `the broker does not speak ${EXTENSION}`));
      return;
    }
    void this.#request('watch_registry', {}, false).then(
      (reply) => this.#registry?.push(readRuntimes(reply)),
      (error: unknown) => this.#event('watch_registry.failed', { reason: String(error) }),
    );
  }

  #requestId(): string {
    this.#lastRequest += 1;
    return `c${this.#lastRequest}`;
  }

  #event(event: string, fields: Readonly<Record<string, unknown>>): void {
    this.#options.onEvent?.(event, fields);
  }
}

function refusal(envelope: Envelope): BrokerError {
  const { code, message, reason, error } = readWireError(envelope);
  return new BrokerError(code, message ?? reason ?? error?.message ?? code, {
    ...(reason === undefined ? {} : { reason }),
    ...(error === undefined ? {} : { jobError: error }),
  });
}
