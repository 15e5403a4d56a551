/** What a connection learns from `hello_ok`, for brokers with and without the extension. */
import {
  type Envelope,
  EXTENSION,
  type JsonObject,
  type JsonValue,
  MAX_ERROR_BYTES,
  MAX_FRAME_BYTES,
  MAX_OUTSTANDING_REQUESTS,
  MAX_RESULT_BYTES,
  MAX_TASKS_PER_MESSAGE,
} from '@reelhost/protocol';

/** The terms of one connection. */
export interface ConnectionTerms {
  /** Whether the broker speaks `reelhost.1` here. */
  readonly extension: boolean;
  /** The broker's version, or undefined for other makers' brokers. */
  readonly brokerVersion: string | undefined;
  /** Counts the starts of the journal. */
  readonly generation: number | undefined;
  /** Identifies the journal; another value means another broker with no memory of our jobs. */
  readonly instance: string | undefined;
  readonly maxFrameBytes: number;
  readonly maxResultBytes: number;
  readonly maxErrorBytes: number;
  /** Requests that may wait for their reply. */
  readonly maxOutstandingRequests: number;
  /** Task keys in one message. */
  readonly maxTasksPerMessage: number;
  /** The executions the broker still wants; undefined without the extension. */
  readonly wanted: ReadonlySet<string> | undefined;
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}

function positive(value: JsonValue | undefined, otherwise: number): number {
  return typeof value === 'number' && value > 0 ? value : otherwise;
}

/** Reads `hello_ok`; whatever is missing has Tay's value. */
export function readHelloOk(envelope: Envelope): ConnectionTerms {
  const extensions = envelope.value('extensions');
  const extension = Array.isArray(extensions) && extensions.includes(EXTENSION);
  const limits = objectOf(extension ? envelope.value('limits') : undefined);
  const broker = objectOf(extension ? envelope.value('broker') : undefined);
  const resume = extension ? envelope.value('resume') : undefined;
  const wanted = (Array.isArray(resume) ? resume : [])
    .map(objectOf)
    .filter((entry) => entry['wanted'] === true && typeof entry['execution_id'] === 'string')
    .map((entry) => entry['execution_id'] as string);
  return {
    extension,
    brokerVersion: typeof broker['version'] === 'string' ? broker['version'] : undefined,
    generation: typeof broker['generation'] === 'number' ? broker['generation'] : undefined,
    instance: typeof broker['instance'] === 'string' ? broker['instance'] : undefined,
    maxFrameBytes: positive(limits['max_frame_bytes'], MAX_FRAME_BYTES),
    maxResultBytes: positive(limits['max_result_bytes'], MAX_RESULT_BYTES),
    maxErrorBytes: positive(limits['max_error_bytes'], MAX_ERROR_BYTES),
    maxOutstandingRequests: positive(limits['max_outstanding_requests'], MAX_OUTSTANDING_REQUESTS),
    maxTasksPerMessage: positive(limits['max_tasks_per_message'], MAX_TASKS_PER_MESSAGE),
    wanted: extension ? new Set(wanted) : undefined,
  };
}

/** The terms before the first handshake: what we hope for. */
export const IDLE_TERMS: ConnectionTerms = {
  extension: true,
  brokerVersion: undefined,
  generation: undefined,
  instance: undefined,
  maxFrameBytes: MAX_FRAME_BYTES,
  maxResultBytes: MAX_RESULT_BYTES,
  maxErrorBytes: MAX_ERROR_BYTES,
  maxOutstandingRequests: MAX_OUTSTANDING_REQUESTS,
  maxTasksPerMessage: MAX_TASKS_PER_MESSAGE,
  wanted: new Set(),
};
