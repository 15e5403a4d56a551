/**
 * @reelhost/bridge-protocol: the remote wire language `reelbolt.runner.v1`, for both of its ends. Strict in what it writes, tolerant in what it reads.
 * It holds no state, opens nothing and knows no clock.
 */
export * from './gateway-messages.js';
export * from './hello-signature.js';
export {
  type GatewayMessage,
  type Inbound,
  type Malformed,
  type MalformedReason,
  type MessageOf,
  type Remains,
  type RunnerMessage,
  readInbound,
} from './inbound.js';
export * from './limits.js';
export * from './names.js';
export * from './ops.js';
export { type DraftOf, type GatewayDraft, type RunnerDraft, type Written, writeOutbound } from './outbound.js';
export { isJsonObject, type JsonObject, memberText, RawJson, rawJson, utf8Bytes } from './raw-json.js';
export * from './runner-messages.js';
export * from './secret-urls.js';
export * from './versions.js';
