/** Who wants to hear of a job's end and progress. docs/local-protocol.md, Outcomes and progress. */
import { type Core, push, reply } from './core.js';
import { isFinal, type Job } from './job.js';
import { settledFields } from './job-view.js';
import { findJob } from './lookup.js';
import type { Peer } from './peer.js';
import type { RequestOf } from './turn.js';

/** Lets a connection hear of the end and the progress of an unfinished job. */
export function watchJob(core: Core, peer: Peer, jobId: string): void {
  peer.watches.add(jobId);
  const watchers = core.watchers.get(jobId);
  if (watchers === undefined) core.watchers.set(jobId, new Set([peer]));
  else watchers.add(peer);
}

/** Everything a connection watched is forgotten with it. */
export function forgetWatches(core: Core, peer: Peer): void {
  for (const jobId of peer.watches) {
    const watchers = core.watchers.get(jobId);
    watchers?.delete(peer);
    if (watchers?.size === 0) core.watchers.delete(jobId);
  }
  peer.watches.clear();
}

/** `watch`: for existing jobs what `enqueue` with `watch: true` does for a new one. */
export function watch(core: Core, peer: Peer, request: RequestOf<'watch'>): void {
  const found: string[] = [];
  const unknown: string[] = [];
  const settled: Job[] = [];
  for (const id of new Set(request.job_ids)) {
    const job = findJob(core, id);
    if (job === null || job === 'expired') unknown.push(id);
    else {
      found.push(id);
      if (isFinal(job.state)) settled.push(job);
      else watchJob(core, peer, id);
    }
  }
  reply(
    core,
    peer,
    'watching',
    request.request_id,
    `,"job_ids":${JSON.stringify(found)},"unknown":${JSON.stringify(unknown)}`,
  );
  for (const job of settled) {
    const result = job.state === 'completed' ? (job.result ?? core.archive.readResult(job) ?? 'null') : 'null';
    push(core, peer, 'job_settled', settledFields(job, result));
  }
}

/** Latest progress of a job to its watchers, at most one per interval; a later one replaces what still waits. The last goes out before the outcome does. */
export function publishProgress(core: Core, job: Job, progress: string): void {
  if (!core.watchers.has(job.id)) return;
  job.progress ??= { item: { kind: 'progress', jobId: job.id }, sentAt: Number.NEGATIVE_INFINITY, waiting: null };
  if (job.progress.waiting !== null) {
    job.progress.waiting = progress;
    return;
  }
  const next = job.progress.sentAt + core.settings.progressIntervalMs;
  if (core.now.mono >= next) sendProgress(core, job, progress);
  else {
    job.progress.waiting = progress;
    core.durations.add(next, job.progress.item);
  }
}

/** The interval is over: what waited goes out, unless the job has ended. */
export function progressDue(core: Core, jobId: string): void {
  const job = core.jobs.get(jobId);
  if (job !== undefined) flushProgress(core, job);
}

/** What waits goes out now: a job's last progress is never overtaken by its outcome. */
export function flushProgress(core: Core, job: Job): void {
  const waiting = job.progress?.waiting ?? null;
  if (waiting !== null) sendProgress(core, job, waiting);
}

function sendProgress(core: Core, job: Job, progress: string): void {
  if (job.progress === null) return;
  job.progress.sentAt = core.now.mono;
  job.progress.waiting = null;
  for (const peer of core.watchers.get(job.id) ?? [])
    push(core, peer, 'job_progress', `,"job_id":"${job.id}","progress":${progress}`);
}
