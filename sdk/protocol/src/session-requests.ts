/** The requests with which a connection introduces itself and its tasks: `hello`, `register_tasks`, `unregister_tasks`. */
import { type Envelope, isBoundedText } from './envelope.js';
import {
  MAX_ATTRIBUTES_BYTES,
  MAX_ID_BYTES,
  MAX_IDEMPOTENT_OPS,
  MAX_KEY_BYTES,
  MAX_RESUME_ENTRIES,
  MAX_SOFTWARE_BYTES,
  REQUEST_LIMITS,
  type RequestLimits,
} from './limits.js';
import { type JsonObject, type JsonValue, RawJson } from './raw-json.js';
import { EXTENSION, type Hello, type ResumeEntry, type TaskDeclaration } from './request-messages.js';
import { accept, type RequestResult, refuse } from './request-result.js';

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalidHello(message: string): RequestResult {
  return refuse('invalid_hello', message);
}

/** Reads `hello`. Extension fields only count when `extensions` has `reelhost.1`. */
export function readHello(envelope: Envelope, limits: RequestLimits = REQUEST_LIMITS): RequestResult {
  const { maxIdBytes, maxConcurrency } = limits;
  const mode = envelope.value('mode');
  if (mode !== 'client' && mode !== 'embedded' && mode !== 'worker') {
    return invalidHello('mode must be "client", "embedded" or "worker"');
  }
  const runtime_id = envelope.value('runtime_id');
  if (!isBoundedText(runtime_id, maxIdBytes))
    return invalidHello(`runtime_id must have 1 to ${maxIdBytes} bytes without NUL`);
  const max_concurrency = envelope.value('max_concurrency') ?? 0;
  const least = mode === 'client' ? 0 : 1;
  const most = mode === 'client' ? 0 : maxConcurrency;
  if (
    typeof max_concurrency !== 'number' ||
    !Number.isInteger(max_concurrency) ||
    max_concurrency < least ||
    max_concurrency > most
  ) {
    return invalidHello(
      mode === 'client' ? 'a client has max_concurrency 0' : `max_concurrency must be in 1..${maxConcurrency}`,
    );
  }
  const hello: { -readonly [K in keyof Hello]: Hello[K] } = {
    type: 'hello',
    request_id: envelope.requestId,
    mode,
    runtime_id,
    max_concurrency,
  };
  const extensions = envelope.value('extensions');
  if (!Array.isArray(extensions) || !extensions.includes(EXTENSION)) return accept(hello);
  hello.extensions = [EXTENSION];
  const pid = envelope.value('pid') ?? null;
  if (pid !== null) {
    if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid < 1)
      return invalidHello('pid must be a process id');
    hello.pid = pid;
  }
  const software = envelope.value('software') ?? null;
  if (software !== null) {
    if (!isBoundedText(software, MAX_SOFTWARE_BYTES)) return invalidHello('software must have 1 to 128 bytes');
    hello.software = software;
  }
  const resume = readResume(envelope.value('resume') ?? []);
  if (resume === undefined) return invalidHello('resume must be an array of at most 1024 executions');
  if (mode === 'client' && resume.length > 0) return invalidHello('a client has nothing to resume');
  hello.resume = resume;
  return accept(hello);
}

function readResume(value: JsonValue): ResumeEntry[] | undefined {
  if (!Array.isArray(value) || value.length > MAX_RESUME_ENTRIES) return undefined;
  const entries: ResumeEntry[] = [];
  const seen = new Set<string>();
  for (const entry of value) {
    if (!isObject(entry)) return undefined;
    const { execution_id, reservation_id, job_id, state } = entry;
    if (!isBoundedText(execution_id, MAX_ID_BYTES) || !isBoundedText(reservation_id, MAX_ID_BYTES)) return undefined;
    if (!isBoundedText(job_id, MAX_ID_BYTES) || (state !== 'running' && state !== 'finished')) return undefined;
    if (seen.has(execution_id)) return undefined;
    seen.add(execution_id);
    entries.push({ execution_id, reservation_id, job_id, state });
  }
  return entries;
}

/** Reads `tasks`; answers a sentence when it is wrong. */
export function readTaskKeys(envelope: Envelope, limits: RequestLimits = REQUEST_LIMITS): string[] | string {
  const { maxTasksPerMessage, maxNameBytes } = limits;
  const tasks = envelope.value('tasks');
  if (!Array.isArray(tasks)) return 'tasks must be an array';
  if (tasks.length > maxTasksPerMessage) return `tasks has more than ${maxTasksPerMessage} keys`;
  if (!tasks.every((task): task is string => isBoundedText(task, maxNameBytes))) {
    return `a task key must have 1 to ${maxNameBytes} bytes without NUL`;
  }
  return new Set(tasks).size === tasks.length ? tasks : 'tasks has a key twice';
}

/** Reads `register_tasks`. */
export function readRegisterTasks(
  envelope: Envelope,
  extension: boolean,
  limits: RequestLimits = REQUEST_LIMITS,
): RequestResult {
  const request_id = envelope.requestId;
  const tasks = readTaskKeys(envelope, limits);
  if (typeof tasks === 'string') return refuse('invalid_tasks', tasks);
  const declared = extension ? (envelope.value('declarations') ?? null) : null;
  if (declared === null) return accept({ type: 'register_tasks', request_id, tasks });
  if (!isObject(declared)) return refuse('invalid_tasks', 'declarations must be an object');
  const declarations: Record<string, TaskDeclaration> = {};
  for (const [task, value] of Object.entries(declared)) {
    if (!tasks.includes(task)) return refuse('invalid_tasks', 'declarations has a key that tasks has not');
    const declaration = readDeclaration(value);
    if (typeof declaration === 'string') return refuse('invalid_tasks', declaration);
    Object.defineProperty(declarations, task, { value: declaration, enumerable: true });
  }
  return accept({ type: 'register_tasks', request_id, tasks, declarations });
}

function readDeclaration(value: JsonValue): TaskDeclaration | string {
  if (!isObject(value)) return 'a declaration must be an object';
  const attributes = value['attributes'] ?? {};
  if (!isObject(attributes)) return 'attributes must be an object';
  const text = JSON.stringify(attributes);
  if (Buffer.byteLength(text) > MAX_ATTRIBUTES_BYTES) return `attributes has more than ${MAX_ATTRIBUTES_BYTES} bytes`;
  const sessions = value['sessions'] ?? 'pinned';
  if (sessions !== 'host' && sessions !== 'pinned') return 'sessions must be "host" or "pinned"';
  const idempotent = value['idempotent'] ?? false;
  if (typeof idempotent !== 'boolean') return 'idempotent must be a boolean';
  const ops = value['idempotent_ops'] ?? [];
  if (!Array.isArray(ops) || ops.length > MAX_IDEMPOTENT_OPS || !ops.every((op) => isBoundedText(op, MAX_KEY_BYTES))) {
    return 'idempotent_ops must be an array of strings';
  }
  return { attributes: RawJson.trusted(text), sessions, idempotent, idempotent_ops: ops as string[] };
}
