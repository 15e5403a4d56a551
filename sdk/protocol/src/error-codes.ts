/**
 * The closed table of error codes on the local wire: whose fault each is, whether the same request may succeed later, and
 * whether the connection ends. Programs decide by code; the text beside it is for people.
 */

/** Who has to change something. `peer`: the sender; `host`: this machine or the broker; `task`: the job's own work; `none`: nobody. */
export type Fault = 'peer' | 'host' | 'task' | 'none';

/** One row of the table. */
export interface ErrorRow {
  readonly fault: Fault;
  /** The same request may succeed if it is sent again later. */
  readonly retryable: boolean;
  /** The connection is closed after it; it then has no `request_id`. */
  readonly fatal: boolean;
  /** Only sent on a `reelhost.1` connection. */
  readonly extension: boolean;
  /** What it means and what to do, for people. */
  readonly meaning: string;
}

function row(fault: Fault, retryable: boolean, fatal: boolean, extension: boolean, meaning: string): ErrorRow {
  return { fault, retryable, fatal, extension, meaning };
}

/** All codes of `error` messages. */
export const ERROR_CODES = {
  frame_too_large: row('peer', false, true, false, 'the announced length is over the frame limit'),
  malformed_json: row('peer', false, true, false, 'the payload is not JSON in UTF-8'),
  unsupported_version: row('peer', false, true, false, 'version is missing or not 1'),
  unknown_message: row('peer', false, true, false, 'this type of message does not exist'),
  invalid_frame: row('peer', false, true, false, 'the frame is empty, not an object, or an envelope field is wrong'),
  buffer_limit: row('peer', false, true, false, 'too many unread bytes are waiting'),
  hello_timeout: row('peer', true, true, false, 'no hello came in time'),
  frame_timeout: row('peer', true, true, false, 'a frame was begun and not completed in time'),
  too_many_connections: row('host', true, true, false, 'the broker serves as many connections as it may'),
  value_limit: row('peer', false, false, false, 'the values of the frame are too deep, too many or too large'),
  invalid_hello: row('peer', false, false, false, 'mode, runtime_id or max_concurrency is wrong'),
  already_hello: row('peer', false, false, false, 'hello was already answered on this connection'),
  hello_required: row('peer', false, false, false, 'the first request must be hello'),
  connection_closed: row('none', true, false, false, 'the connection is being closed'),
  unavailable: row('host', true, false, false, 'the broker cannot do this now, e.g. because it is stopping'),
  invalid_tasks: row('peer', false, false, false, 'tasks must be an array of distinct task keys'),
  client_cannot_execute: row('peer', false, false, false, 'a client has no tasks; say hello as worker or embedded'),
  bulk_scheduling_unsupported: row('peer', false, false, false, 'declare schedules one by one with schedule'),
  invalid_enqueue: row(
    'peer',
    false,
    false,
    false,
    'a field or option is wrong, or the id belongs to another definition',
  ),
  capacity: row('host', true, false, false, 'a limit of the broker is reached; reason says which'),
  unknown_outcome: row('host', true, false, false, 'whether it happened is not known; ask again with the same id'),
  invalid_request: row('peer', false, false, false, 'a field is wrong, or the request_id is still in use'),
  too_many_requests: row('peer', true, false, false, 'too many requests of this connection wait for their reply'),
  request_timeout: row('host', true, false, false, 'the broker could not answer in time'),
  not_found: row('peer', false, false, false, 'no job has this id'),
  invalid_job_id: row('peer', false, false, false, 'a job id is 32 lower-case hex digits, not all zero'),
  cancel_rejected: row('none', false, false, false, 'the job is already finished'),
  task_failed: row('task', false, false, false, 'the job was discarded; error says why'),
  job_cancelled: row('none', false, false, false, 'the job was cancelled'),
  result_not_ready: row('none', true, false, false, 'the job is not finished'),
  invalid_schedule: row('peer', false, false, false, 'a field of the schedule is wrong'),
  schedule_not_found: row('peer', false, false, false, 'no schedule has this id'),
  invalid_schedule_id: row('peer', false, false, false, 'a schedule id has 1 to 128 bytes'),
  invalid_execution: row('peer', false, false, false, 'reservation_id and execution_id have 1 to 128 bytes'),
  unknown_execution: row('peer', false, false, false, 'this broker never issued that execution'),
  result_too_large: row('task', false, false, false, 'the result is over the limit'),
  invalid_failure: row('peer', false, false, false, 'error needs type, message or traceback'),
  error_too_large: row('task', false, false, false, 'the error object is over the limit'),
  disk_full: row('host', true, false, false, 'the state directory has no space left'),
  extension_required: row('peer', false, false, false, 'this message needs hello with extensions: ["reelhost.1"]'),
  invalid_session: row('peer', false, false, true, 'session_id, task, labels or grace_ms is wrong'),
  session_not_found: row('peer', false, false, true, 'no session has this id'),
  session_closed: row('peer', false, false, true, 'the session is closed'),
  session_lost: row('host', false, false, true, 'the session lost the runtime that held it'),
  session_conflict: row('peer', false, false, true, 'the session is open for another task'),
  session_busy: row('peer', true, false, true, 'another job of the session is not finished'),
  job_expired: row('none', false, false, true, 'the job ran, but its result is no longer kept'),
  invalid_progress: row('peer', false, false, true, 'progress needs a stage; percent lies in 0..100'),
  invalid_watch: row('peer', false, false, true, 'job_ids is an array of at most 1,024 job ids'),
  invalid_inspect: row('peer', false, false, true, 'what, id, limit, cursor or state is wrong'),
} as const satisfies Record<string, ErrorRow>;

/** A code of an `error` message. */
export type ErrorCode = keyof typeof ERROR_CODES;

/** The types a job's error has when the broker itself ends the job, and whether enqueueing the work anew may succeed. */
export const BROKER_FAILURES = {
  timeout: { retryable: false, meaning: 'the job ran longer than its timeout' },
  executor_lost: { retryable: true, meaning: 'the executor went away while the job ran' },
  cancelled: { retryable: false, meaning: 'the job was cancelled' },
  result_too_large: { retryable: false, meaning: 'the result is over the limit' },
  result_invalid: { retryable: false, meaning: 'the result is too deep or has too many values' },
  error_too_large: { retryable: false, meaning: 'the error object is over the limit' },
  interrupted_too_often: { retryable: false, meaning: 'the job was cut off as often as is allowed' },
  secrets_lost: { retryable: true, meaning: 'the secrets of the job did not come again after a restart; it never ran' },
} as const satisfies Record<string, { readonly retryable: boolean; readonly meaning: string }>;

/** A failure type set by the broker. */
export type BrokerFailure = keyof typeof BROKER_FAILURES;
