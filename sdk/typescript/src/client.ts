/**
 * A producer's connection to the broker: it enqueues jobs and learns their outcomes, opens sessions, watches executors.
 *
 * It reconnects by itself. Requests that may be said twice are said again after a cut, watches are renewed, so that an outcome
 * reaches its handle across a restart of the broker. Every enqueue carries a job id, its own or one made here: repeating it can not
 * make a second job.
 */
import { randomBytes } from 'node:crypto';
import {
  DEFAULT_CLOSE_GRACE_MS,
  type Envelope,
  type Inspectable,
  type JsonValue,
  type Push,
  submissionJobId,
} from '@reelhost/protocol';
import { ClientConnection, type ConnectionOwner } from './client-connection.js';
import { type EnqueueRequest, enqueueFields, type ScheduleRequest, scheduleFields } from './client-requests.js';
import {
  type JobInfo,
  type RuntimeInfo,
  readJob,
  readRuntimes,
  readScheduleInfo,
  readSession,
  type ScheduleInfo,
  type SessionInfo,
} from './client-views.js';
import type { EventListener } from './executor.js';
import type { ConnectionTerms } from './hello-reply.js';
import type { CancelReply, JobHandle, WatchedJob } from './job-handle.js';
import { JobWatches } from './job-watches.js';
import { RegistryWatch } from './registry-watch.js';
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

/** A session to be opened. */
export interface SessionRequest {
  readonly sessionId: string;
  readonly task: string;
  /** By which the opener finds its sessions again; at most 4 KiB. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

const REPEATABLE = { repeatable: true };

/** A connection to a broker. */
export class BrokerClient implements ConnectionOwner {
  readonly #event: EventListener;
  readonly #connection: ClientConnection;
  readonly #jobs: JobWatches;
  readonly #registry: RegistryWatch;

  private constructor(options: ClientOptions) {
    this.#event = options.onEvent ?? (() => undefined);
    const connection = {
      socketPath: resolveSocketPath(options.socketPath),
      runtimeId: options.runtimeId ?? `client-${process.pid}`,
      software: options.software,
      requestTimeoutMs: options.requestTimeoutMs ?? 30_000,
    };
    this.#connection = new ClientConnection(connection, this);
    this.#jobs = new JobWatches(this.#connection, this.#event);
    this.#registry = new RegistryWatch(this.#connection, this.#event);
  }

  /**
   * Connects to the broker.
   * @throws BrokerError `not_running` when nobody listens, `connect_timeout` when no handshake came about in time
   * @throws InvalidSocketPath
   */
  static async connect(options: ClientOptions = {}): Promise<BrokerClient> {
    const client = new BrokerClient(options);
    await client.#connection.open(options.connectTimeoutMs ?? 5_000);
    return client;
  }

  /** What the present connection agreed on. */
  get terms(): ConnectionTerms {
    return this.#connection.terms;
  }

  /** Whether there is a connection at this moment; requests wait for one. */
  get isConnected(): boolean {
    return this.#connection.isUp;
  }

  /** Makes a job, or finds the one that has this id. @throws BrokerError */
  async enqueue(request: EnqueueRequest): Promise<JobHandle> {
    const made = request.id ?? (request.submissionId === undefined ? randomBytes(16).toString('hex') : undefined);
    const jobId = made ?? submissionJobId(request.submissionId ?? '');
    if (request.sessionId !== undefined || request.secrets !== undefined) {
      this.#connection.requireExtension('sessions and secrets');
    }
    const known = this.#jobs.has(jobId);
    const watched = this.#jobs.watched(jobId);
    watched.enqueuing += 1;
    try {
      const fields = enqueueFields(request, made, this.terms.extension);
      const reply = await this.#connection.request('enqueue', fields, REPEATABLE);
      this.#jobs.poll(jobId);
      return this.#handle(watched, readJob(reply), reply.value('conflict') === true);
    } catch (error) {
      if (!known) this.#jobs.fail(jobId, error);
      throw error;
    } finally {
      watched.enqueuing -= 1;
    }
  }

  /** Follows a job that was enqueued before. */
  attach(jobId: string): JobHandle {
    const known = this.#jobs.has(jobId);
    const watched = this.#jobs.watched(jobId);
    if (!known && this.isConnected) this.#jobs.renew([jobId]);
    return this.#handle(watched, undefined, false);
  }

  /** A job as it is now. @throws BrokerError */
  async status(jobId: string): Promise<JobInfo> {
    return readJob(await this.#connection.request('status', { job_id: jobId }, REPEATABLE));
  }

  /** The result of a completed job. @throws BrokerError `result_not_ready`, `task_failed`, `job_cancelled`, `not_found` … */
  async result(jobId: string): Promise<{ readonly result: JsonValue; readonly resultJson: string }> {
    const reply = await this.#connection.request('result', { job_id: jobId }, REPEATABLE);
    const resultJson = reply.raw('result') ?? 'null';
    return { result: JSON.parse(resultJson) as JsonValue, resultJson };
  }

  /** Cancels a job; with `waitMs` the reply waits for the executor to end it. @throws BrokerError `cancel_rejected` … */
  async cancel(jobId: string, options: { readonly waitMs?: number | undefined } = {}): Promise<CancelReply> {
    const { waitMs } = options;
    const patient = (waitMs ?? 0) > 0;
    if (patient && !this.#connection.hasPatientPlace) {
      // The wait has to wait, the cancel must not.
      const now = readCancel(await this.#connection.request('cancel', { job_id: jobId }, REPEATABLE));
      if (now.stopped !== false) return now;
    }
    const manner = { repeatable: true, extraMs: waitMs, patient };
    return readCancel(await this.#connection.request('cancel', { job_id: jobId, wait_ms: waitMs }, manner));
  }

  /** Opens a session, or finds the open one that has this id. @throws BrokerError */
  async openSession(session: SessionRequest): Promise<SessionInfo> {
    const { sessionId, task, labels } = session;
    return readSession(await this.#extended('open_session', { session_id: sessionId, task, labels }));
  }

  /** Closes a session and removes its directory. @throws BrokerError */
  async closeSession(
    sessionId: string,
    options: { readonly graceMs?: number | undefined } = {},
  ): Promise<{ readonly session: SessionInfo; readonly stopped: boolean }> {
    const { graceMs } = options;
    const fields = { session_id: sessionId, grace_ms: graceMs };
    const reply = await this.#extended('close_session', fields, {
      patient: true,
      extraMs: graceMs ?? DEFAULT_CLOSE_GRACE_MS,
    });
    return { session: readSession(reply), stopped: reply.value('stopped') === true };
  }

  /** The executors, now and after every change. A slow reader sees the latest. */
  watchRegistry(): AsyncIterable<RuntimeInfo[]> {
    return this.#registry.begin();
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
    return readScheduleInfo(await this.#connection.request('schedule', scheduleFields(request), { repeatable }));
  }

  /** Ends a schedule. @throws BrokerError */
  async cancelSchedule(scheduleId: string): Promise<ScheduleInfo> {
    const fields = { schedule_id: scheduleId };
    return readScheduleInfo(await this.#connection.request('cancel_schedule', fields, REPEATABLE));
  }

  /** Disconnects. Jobs go on; outcomes not yet known are rejected with `client_closed`. */
  async close(): Promise<void> {
    this.#connection.close();
  }

  // The connection's owner: not for users of a client.

  /** @internal */
  connected(): void {
    this.#jobs.renewAll();
    this.#registry.renew();
    this.#event('client.connected', { extension: this.terms.extension });
  }

  /** @internal */
  disconnected(reason: unknown): void {
    this.#event('client.disconnected', { reason: reason instanceof Error ? reason.message : String(reason) });
  }

  /** @internal */
  pushed(push: Push, envelope: Envelope): void {
    switch (push.type) {
      case 'job_settled':
      case 'job_progress':
        this.#jobs.pushed(push);
        return;
      case 'registry_changed':
        this.#registry.push(readRuntimes(envelope));
        return;
      case 'ping':
      case 'execute':
      case 'cancel_execution':
        return;
    }
  }

  /** @internal */
  ended(error: unknown): void {
    this.#jobs.failAll(error);
    this.#registry.end();
  }

  async #extended(
    type: string,
    fields: Parameters<ClientConnection['request']>[1],
    manner: { readonly patient?: boolean; readonly extraMs?: number } = {},
  ): Promise<Envelope> {
    this.#connection.requireExtension(type);
    return this.#connection.request(type, fields, { repeatable: true, ...manner });
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
}

function readCancel(reply: Envelope): CancelReply {
  const stopped = reply.value('stopped');
  return { job: readJob(reply), stopped: typeof stopped === 'boolean' ? stopped : undefined };
}
