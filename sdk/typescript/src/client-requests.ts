/** What a client asks for, in the SDK's own names, and how it is written on the wire. */
import { type JsonObject, type MessageFields, RawJson } from '@reelhost/protocol';

/** A job to be made. */
export interface EnqueueRequest {
  readonly task: string;
  /** An object, or the text of one, which is carried byte for byte. */
  readonly args: JsonObject | RawJson;
  /** The session the job belongs to. */
  readonly sessionId?: string | undefined;
  /** 32 lower-case hex digits; not together with `submissionId`. */
  readonly id?: string | undefined;
  /** A name from which the job id is derived. */
  readonly submissionId?: string | undefined;
  readonly delayMs?: number | undefined;
  /** UTC milliseconds; not together with `delayMs`. */
  readonly runAt?: number | undefined;
  /** Further runs after a failure; default 0. */
  readonly retries?: number | undefined;
  /** Default 30,000. */
  readonly timeoutMs?: number | undefined;
  readonly queue?: string | undefined;
  /** Replaces strings `reelhost-secret:<name>` in the arguments at the last moment; never stored. */
  readonly secrets?: Readonly<Record<string, string>> | undefined;
}

/** A schedule to be declared: `cron` or `everyMs`. */
export interface ScheduleRequest {
  readonly task: string;
  readonly args?: JsonObject | RawJson | undefined;
  /** Five fields: minute, hour, day, month, weekday. */
  readonly cron?: string | undefined;
  readonly everyMs?: number | undefined;
  /** `UTC`, `Z`, `±HH` or `±HH:MM`; only with `cron`. */
  readonly timezone?: string | undefined;
  readonly overlap?: 'allow' | 'skip' | 'queue' | undefined;
  readonly catchUp?: 'latest' | 'all' | undefined;
  readonly delayMs?: number | undefined;
  /** UTC milliseconds; not together with `delayMs`. */
  readonly startAt?: number | undefined;
  readonly declarationId?: string | undefined;
  readonly retries?: number | undefined;
  readonly timeoutMs?: number | undefined;
  readonly queue?: string | undefined;
}

function rawArgs(args: JsonObject | RawJson): RawJson {
  return args instanceof RawJson ? args : RawJson.trusted(JSON.stringify(args));
}

/** The fields of `enqueue`; `id` is the job id made for it, unless it has a submission id. */
export function enqueueFields(request: EnqueueRequest, id: string | undefined, extension: boolean): MessageFields {
  const { task, sessionId, secrets, submissionId, delayMs, runAt, retries, timeoutMs, queue } = request;
  const options = {
    id,
    submission_id: submissionId,
    delay_ms: delayMs,
    run_at: runAt,
    retries,
    timeout_ms: timeoutMs,
    queue,
  };
  const fields: MessageFields = { task, args: rawArgs(request.args), options };
  return extension ? { ...fields, session_id: sessionId, watch: true, secrets } : fields;
}

/** The fields of `schedule`. */
export function scheduleFields(request: ScheduleRequest): MessageFields {
  const { task, args, cron, everyMs, timezone, overlap, catchUp, delayMs, startAt, declarationId } = request;
  const { retries, timeoutMs, queue } = request;
  return {
    task,
    args: rawArgs(args ?? {}),
    cron,
    every: everyMs === undefined ? undefined : { seconds: everyMs / 1000 },
    timezone,
    overlap,
    catch_up: catchUp,
    delay: delayMs === undefined ? undefined : delayMs / 1000,
    start_at: startAt,
    declaration_id: declarationId,
    options: { retries, timeout_ms: timeoutMs, queue },
  };
}
