/**
 * Writes messages as JSON text. Raw parts (`args`, `result`, `details`) are spliced in as they are. The frequent small messages have
 * a template of their own; all others go through one general writer.
 */
import type { BrokerMessage, WireError } from './broker-messages.js';
import type { ErrorCode } from './error-codes.js';
import { type Encodable, quote, RawJson, stringify } from './raw-json.js';

/** Fields of a message beside `version`, `type` and `request_id`; parts may be raw, absent members are left out. */
export type MessageFields = { readonly [key: string]: Encodable };

/** Any message as JSON text. */
export function encode(type: string, requestId: string | undefined, fields: MessageFields = {}): string {
  let text = `{"version":1,"type":${quote(type)}`;
  if (requestId !== undefined) text += `,"request_id":${quote(requestId)}`;
  for (const key in fields) {
    const value = fields[key];
    if (value !== undefined) text += `,${quote(key)}:${value instanceof RawJson ? value.text : stringify(value)}`;
  }
  return `${text}}`;
}

/** A broker's message as JSON text. */
export function encodeMessage(message: BrokerMessage): string {
  switch (message.type) {
    case 'accepted':
      return `{"version":1,"type":"accepted","request_id":${quote(message.request_id)}}`;
    case 'execute': {
      let text = `{"version":1,"type":"execute","request_id":${quote(message.request_id)},"reservation_id":${quote(message.reservation_id)},"execution_id":${quote(message.execution_id)},"job_id":"${message.job_id}","task":${quote(message.task)},"args":${message.args.text},"timeout_ms":${message.timeout_ms}`;
      if (message.attempt !== undefined) text += `,"attempt":${message.attempt}`;
      if (message.queue !== undefined) text += `,"queue":${quote(message.queue)}`;
      if (message.session_id !== undefined) text += `,"session_id":${quote(message.session_id)}`;
      return `${text}}`;
    }
    case 'job_settled': {
      const head = `{"version":1,"type":"job_settled","request_id":${quote(message.request_id)},"job_id":"${message.job_id}","state":"${message.state}"`;
      if (message.state === 'completed') return `${head},"result":${message.result.text}}`;
      return `${head},"error":${stringify(message.error as unknown as Encodable)}}`;
    }
  }
  const { type, request_id, ...fields } = message;
  return encode(type, request_id, fields as unknown as MessageFields);
}

/** An `error` message; without a request id it is the last one of the connection. */
export function encodeError(
  requestId: string | undefined,
  code: ErrorCode,
  more: Omit<WireError, 'code'> = {},
): string {
  return encode('error', requestId, { error: { code, ...more } as unknown as Encodable });
}
