/**
 * `enqueue`: from a request to a durable job, or to the job that has this id already.
 *
 * An id means one job for ever: an equal definition is answered with the job as it is, another definition is refused, or, inside a session,
 * answered with `conflict: true` (a repeated remote operation must get the first one's answer). An id of which only the tombstone is left never runs again.
 */
import type { Enqueue, EnqueueOptions } from '@reelhost/protocol';
import { type Core, log, push, recordJob, refuse, refuseDegraded, reply } from './core.js';
import { isFinal, type Job, type JobDefinition, type RawJson, sameDefinition } from './job.js';
import { isLarge, jobText, settledFields } from './job-view.js';
import { findJob } from './lookup.js';
import type { Peer } from './peer.js';
import { NO_SECRETS, type SecretsWeight, weighSecrets } from './secret-places.js';
import type { Session } from './session.js';
import { anotherTask, findSession } from './sessions.js';
import { pinOf } from './settlement.js';
import { park } from './waiting.js';
import { watchJob } from './watching.js';

/** `enqueue`. */
export function enqueue(core: Core, peer: Peer, request: Enqueue, argsBytes: number): void {
  const { task, options } = request;
  const args = request.args.text;
  const sessionId = request.session_id ?? null;
  const watch = request.watch === true;
  const maxArgsBytes = peer.extension ? core.settings.extensionMaxArgsBytes : core.settings.maxArgsBytes;
  if (argsBytes > maxArgsBytes) return tooLarge(core, peer, request, 'args', maxArgsBytes);
  const secrets = request.secrets === undefined ? NO_SECRETS : weighSecrets(args, request.secrets);
  if (args.length + secrets.growth > core.settings.extensionMaxArgsBytes) {
    return tooLarge(core, peer, request, 'args with their secrets put in', core.settings.extensionMaxArgsBytes);
  }
  const definition: JobDefinition = {
    task,
    queue: options.queue,
    maxAttempts: sessionId === null ? options.retries + 1 : 1,
    timeoutMs: options.timeout_ms,
    delayMs: options.delay_ms ?? null,
    runAt: options.run_at ?? null,
    sessionId,
  };
  const id = idOf(core, options);
  const known = options.id === undefined && options.submission_id === undefined ? null : findJob(core, id);
  if (known === 'expired')
    return refuse(core, peer, request, 'job_expired', `job ${id} ran, but its result is no longer kept`);
  if (known !== null) return answerKnown(core, peer, request, known, definition, args, watch, secrets);
  const session = sessionId === null ? null : findSession(core, sessionId);
  if (!mayEnqueue(core, peer, request, sessionId, session)) return;
  const job = createJob(core, id, definition, args, request.secrets === undefined ? 'none' : 'held');
  holdSecrets(core, job, request, secrets);
  if (session !== null) session.running = job;
  core.counters.enqueued++;
  admit(core, job);
  if (watch) watchJob(core, peer, job.id);
  reply(core, peer, 'enqueued', request.request_id, `,"job_id":"${id}","job":${jobText(core, peer, job, false)}`);
}

function invalid(core: Core, peer: Peer, request: Enqueue, text: string): void {
  refuse(core, peer, request, 'invalid_enqueue', text);
}

function idOf(core: Core, options: EnqueueOptions): string {
  if (options.id !== undefined) return options.id;
  if (options.submission_id !== undefined) return core.entropy.submissionJobId(options.submission_id);
  return core.entropy.jobId();
}

function answerKnown(
  core: Core,
  peer: Peer,
  request: Enqueue,
  job: Job,
  definition: JobDefinition,
  args: RawJson,
  watch: boolean,
  secrets: SecretsWeight,
): void {
  const same = sameDefinition(job, definition) && sameArgs(core, job, args);
  if (!same && (definition.sessionId === null || job.sessionId !== definition.sessionId)) {
    return invalid(core, peer, request, `job ${job.id} exists with another definition`);
  }
  core.counters.repeated++;
  if (!same) {
    core.counters.conflicts++;
    log(core, 'warn', 'job.conflict', { jobId: job.id, sessionId: job.sessionId });
  }
  if (request.secrets !== undefined && job.secrets === 'missing') {
    job.secrets = 'held';
    holdSecrets(core, job, request, secrets);
    if (job.state === 'available') makeReady(core, job);
  }
  const conflict = same ? '' : ',"conflict":true';
  const view = jobText(core, peer, job, false);
  reply(core, peer, 'enqueued', request.request_id, `,"job_id":"${job.id}","job":${view}${conflict}`);
  if (!watch) return;
  if (isFinal(job.state)) push(core, peer, 'job_settled', settledFields(job, resultOf(core, job)));
  else watchJob(core, peer, job.id);
}

/** Secrets stay with the driver, in memory; the core only knows that there are some. */
function holdSecrets(core: Core, job: Job, request: Enqueue, weight: SecretsWeight): void {
  if (request.secrets === undefined) return;
  job.secretsGrowth = weight.growth;
  job.secretsHeld = weight.held;
  core.secretsHeld += weight.held;
  core.effects.push({ kind: 'holdSecrets', jobId: job.id, secrets: request.secrets });
}

function tooLarge(core: Core, peer: Peer, request: Enqueue, what: string, limit: number): void {
  refuse(core, peer, request, 'capacity', `${what} are larger than ${limit} bytes`, ',"reason":"args_bytes"');
}

function sameArgs(core: Core, job: Job, args: RawJson): boolean {
  const stored = job.args ?? core.archive.readArgs(job);
  // Of a finished job whose arguments are no longer kept only the rest can be compared.
  return stored === args || stored === 'null' || core.archive.sameJson(stored, args);
}

/** The raw result of a completed job, from wherever it is. */
export function resultOf(core: Core, job: Job): RawJson {
  return job.result ?? core.archive.readResult(job) ?? 'null';
}

function mayEnqueue(
  core: Core,
  peer: Peer,
  request: Enqueue,
  sessionId: string | null,
  session: Session | null,
): boolean {
  if (sessionId !== null) {
    if (session === null) refuse(core, peer, request, 'session_not_found', `there is no session ${sessionId}`);
    else if (session.state === 'lost')
      refuse(core, peer, request, 'session_lost', `session ${sessionId} lost the runtime that held it`);
    else if (session.state !== 'open') refuse(core, peer, request, 'session_closed', `session ${sessionId} is closed`);
    else if (session.task !== request.task) refuse(core, peer, request, 'session_conflict', anotherTask(session));
    else if (session.running !== null || session.runningExecution !== null) {
      refuse(core, peer, request, 'session_busy', `session ${sessionId} has a job that is not finished`);
    } else return capacityLeft(core, peer, request);
    return false;
  }
  return capacityLeft(core, peer, request);
}

function capacityLeft(core: Core, peer: Peer, request: Enqueue): boolean {
  if (core.draining) refuse(core, peer, request, 'unavailable', 'the broker is stopping');
  else if (core.degraded !== null) refuseDegraded(core, peer, request, core.degraded);
  else if (core.jobs.size >= core.settings.maxLiveJobs) {
    refuse(
      core,
      peer,
      request,
      'capacity',
      `${core.settings.maxLiveJobs} jobs are not finished`,
      ',"reason":"live_jobs"',
    );
  } else if (request.secrets !== undefined && core.secretsHeld >= core.settings.maxSecretsHeld) {
    refuse(core, peer, request, 'capacity', 'too many secrets are held for unfinished jobs', ',"reason":"secrets"');
  } else return true;
  return false;
}

/** A new job, recorded with this turn. */
export function createJob(
  core: Core,
  id: string,
  definition: JobDefinition,
  args: RawJson,
  secrets: Job['secrets'],
): Job {
  const resident = core.residentArgsBytes + args.length <= core.settings.residentArgsBytes;
  // Field by field: a spread makes V8 keep the job as a dictionary, which costs more than everything else a job costs here.
  const job: Job = {
    seq: core.nextSeq++,
    id,
    task: definition.task,
    queue: definition.queue,
    maxAttempts: definition.maxAttempts,
    timeoutMs: definition.timeoutMs,
    delayMs: definition.delayMs,
    runAt: definition.runAt,
    sessionId: definition.sessionId,
    createdAt: core.now.wall,
    args,
    argsBytes: args.length,
    resident,
    state: 'available',
    attempt: 0,
    interruptions: 0,
    dueAt: null,
    completedAt: null,
    error: null,
    result: null,
    resultBytes: 0,
    execution: null,
    secrets,
    stored: false,
    touched: false,
    order: 0,
    parked: null,
    secretsGrowth: 0,
    secretsHeld: 0,
    progress: null,
  };
  core.residentArgsBytes += args.length;
  core.jobs.set(id, job);
  recordJob(core, job);
  return job;
}

/** Puts a new job into its line, or parks it until it is due. */
export function admit(core: Core, job: Job): void {
  const { delayMs, runAt } = job;
  if (delayMs !== null && delayMs > 0) {
    job.state = 'scheduled';
    job.dueAt = core.now.wall + delayMs;
    park(job, core.durations, core.now.mono + delayMs);
  } else if (runAt !== null && runAt > core.now.wall) {
    job.state = 'scheduled';
    job.dueAt = runAt;
    park(job, core.appointments, runAt);
  } else makeReady(core, job);
}

/** The job may run from now on. */
export function makeReady(core: Core, job: Job): void {
  core.lanes.append(job, pinOf(core, job), isLarge(core, job.argsBytes));
  core.dispatchWanted = true;
}
