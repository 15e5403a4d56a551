/** How reading a request ends: the request, or the error it is answered with. */
import { type Envelope, isBoundedText } from './envelope.js';
import type { ErrorCode } from './error-codes.js';
import { MAX_ID_BYTES } from './limits.js';
import type { Request } from './request-messages.js';

/** Why a request is refused. `message` is for people; `fatal` ends the connection. */
export interface Refusal {
  readonly code: ErrorCode;
  readonly message: string;
  readonly fatal: boolean;
}

/** A request, or its refusal. */
export type RequestResult =
  | { readonly ok: true; readonly request: Request }
  | { readonly ok: false; readonly refusal: Refusal };

/** Accepts a request. */
export function accept(request: Request): RequestResult {
  return { ok: true, request };
}

/** Refuses a request and keeps the connection. */
export function refuse(code: ErrorCode, message: string): RequestResult {
  return { ok: false, refusal: { code, message, fatal: false } };
}

/**
 * The ids of a report, also of one whose content is refused, so that its execution can still be settled; undefined when the ids
 * themselves are bad.
 */
export function reportIds(envelope: Envelope): { reservation_id: string; execution_id: string } | undefined {
  const reservation_id = envelope.value('reservation_id');
  const execution_id = envelope.value('execution_id');
  if (!isBoundedText(reservation_id, MAX_ID_BYTES) || !isBoundedText(execution_id, MAX_ID_BYTES)) return undefined;
  return { reservation_id, execution_id };
}
