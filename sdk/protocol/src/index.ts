/** The public surface of @reelhost/protocol, listed by hand. */
export * from './broker-messages.js';
export { ProtocolViolation, type Push, readJobError, readPush, readWireError } from './broker-reader.js';
export { DEFAULT_OPTIONS, type OptionsResult, readOptions } from './enqueue-options.js';
export {
  Envelope,
  type EnvelopeResult,
  isBoundedText,
  readEnvelope,
  readEnvelopeText,
} from './envelope.js';
export {
  BROKER_FAILURES,
  type BrokerFailure,
  ERROR_CODES,
  type ErrorCode,
  type ErrorRow,
  type Fault,
} from './error-codes.js';
export { readProgress } from './extension-requests.js';
export { encodeFrame, encodeFrames, FrameReader } from './frame-codec.js';
export { isJobId, occurrenceJobId, submissionJobId } from './job-ids.js';
export { checkJson, type ExcessReason } from './json-scanner.js';
export { MalformedJson } from './json-tokens.js';
export * from './limits.js';
export { encode, encodeError, encodeMessage, type MessageFields } from './message-writer.js';
export { type FaultCause, type MalformedReason, type ProtocolFault, protocolFault } from './protocol-faults.js';
export {
  type Encodable,
  type JsonObject,
  type JsonValue,
  quote,
  RAW_NULL,
  RawJson,
  raw,
  stringify,
} from './raw-json.js';
export { redactLine } from './redaction.js';
export * from './request-messages.js';
export { EXTENSION_REQUESTS, parseRequest, type RequestContext } from './request-reader.js';
export { type Refusal, type RequestResult, reportIds } from './request-result.js';
export { timezoneOffsetMinutes } from './schedule-reader.js';
