/**
 * op.response: how an outcome is said, and that it always fits. An answer over the payload limit is replaced by an error, and what the gateway once refused as too
 * large is never said again.
 */
import { MAX_PAYLOAD_BYTES, type OpError, RawJson } from '@reelhost/bridge-protocol';
import type { OpOutcome } from './inputs.js';
import type { Job } from './state.js';
import { log, nextId, openLink, putJob, send, type Turn } from './turn.js';

/** Longest code, and longest text of an error, in characters. */
const CODE_LENGTH = 256;
const TEXT_LENGTH = 4_096;
/** Ops whose oversized answer means that the file is too large. */
const READING_OPS: ReadonlySet<string> = new Set(['read', 'readFile']);

/** What the gateway asked: where the answer goes. */
export type Asked = { readonly jobId: string; readonly sessionId: string; readonly opId: string; readonly op: string };

/** A result as JSON text, or an error. */
export type Answer =
  | { readonly ok: true; readonly resultText: string }
  | { readonly ok: false; readonly error: OpError };

/** An answer that is an error. */
export function problem(code: string, message: string, retryable: boolean): { ok: false; error: OpError } {
  return { ok: false, error: { code, message: message.slice(0, TEXT_LENGTH), retryable } };
}

/** The answer in place of one that does not fit. */
export function tooLarge(op: string): { ok: false; error: OpError } {
  return READING_OPS.has(op)
    ? problem('file_too_large', 'the content does not fit into one message; publish it instead', false)
    : problem('output_too_large', 'the result does not fit into one message', false);
}

/** Sends op.response; an answer over the payload limit is replaced by an error. False: there is no connection. */
export function answer(turn: Turn, job: Job, asked: Asked, given: Answer): boolean {
  if (openLink(turn.state) === null) return false;
  const messageId = nextId(turn);
  const ids = { id: messageId, jobId: asked.jobId, sessionId: asked.sessionId };
  const fence = { leaseEpoch: job.epoch, jobToken: job.token, opId: asked.opId };
  let written = given.ok
    ? isObjectText(given.resultText)
      ? send(turn, {
          type: 'op.response',
          ...ids,
          payload: { ...fence, ok: true, result: new RawJson(given.resultText) },
        })
      : send(turn, {
          type: 'op.response',
          ...ids,
          payload: { ...fence, ...problem('invalid_result', 'the executor answered with no object', false) },
        })
    : send(turn, { type: 'op.response', ...ids, payload: { ...fence, ok: false, error: given.error } });
  if (written !== null && !written.ok) {
    const instead =
      written.reason === 'payload_too_large'
        ? tooLarge(asked.op)
        : problem('invalid_result', 'the answer cannot be sent', false);
    written = send(turn, { type: 'op.response', ...ids, payload: { ...fence, ...instead } });
  }
  const link = openLink(turn.state);
  const current = turn.state.jobs.get(job.jobId);
  if (written?.ok === true && link !== null && current !== undefined && current.epoch === job.epoch) {
    const { generation, seq } = link;
    const bytes = Math.min(written.payloadBytes, MAX_PAYLOAD_BYTES);
    putJob(turn, { ...current, lastResponse: { generation, seq, messageId, opId: asked.opId, bytes } }, false);
  }
  return written !== null;
}

function isObjectText(text: string): boolean {
  return text.trimStart()[0] === '{';
}

/** The remote error that a local one means. */
export function errorOf(op: string, outcome: Extract<OpOutcome, { ok: false }>): OpError {
  const { code, message, retryable } = outcome;
  if (code === 'job_expired' || code === 'session_closed' || code === 'session_not_found') {
    return { code: 'op_expired', message: 'the result of this op is not kept any more', retryable: false };
  }
  if (code === 'session_busy') return { code: 'op_in_flight', message: 'another op still runs', retryable: true };
  if (code === 'result_too_large') return tooLarge(op).error;
  return { code: code.slice(0, CODE_LENGTH) || 'internal', message: message.slice(0, TEXT_LENGTH), retryable };
}

/** A connection died of an oversized message: the largest answer it may have been is never sent again as it was. */
export function blameOversized(turn: Turn, generation: number): void {
  let worst: Job | null = null;
  for (const job of turn.state.jobs.values()) {
    if (job.lastResponse?.generation !== generation) continue;
    if (worst?.lastResponse == null || job.lastResponse.bytes > worst.lastResponse.bytes) worst = job;
  }
  if (worst?.lastResponse == null) {
    log(turn, 'error', 'message.oversized', { messageId: null });
    return;
  }
  const { messageId, opId, bytes } = worst.lastResponse;
  log(turn, 'error', 'message.oversized', { jobId: worst.jobId, messageId, opId, bytes });
  putJob(turn, { ...worst, lastResponse: null, oversized: [...worst.oversized, opId] }, true);
}
