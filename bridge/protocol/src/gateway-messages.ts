/**
 * What a gateway sends: the payload of each type with direction "G to R" (Message catalogue, payload shapes).
 *
 * `…Out` is what our stand-in writes, with every field of the document. What a runner reads is more lenient, because refusing a message of a
 * gateway costs a job: null counts as left out, a list left out is empty, and numbers that have a value in the document fall back to it. The
 * fields without which a message cannot be obeyed stay required.
 */
import { z } from 'zod';
import {
  absent,
  count,
  idText,
  jobTokenText,
  jsonObject,
  name,
  opIdText,
  orElse,
  positive,
  prose,
  protocolVersionText,
  timestamp,
  unlessZero,
} from './fields.js';
import { CANCEL_GRACE_SEC, DEAD_AFTER_SEC, HEARTBEAT_SEC, MAX_PAYLOAD_BYTES, MAX_SESSION_SEC } from './limits.js';
import { CANCEL_REASONS, RUNNER_KINDS } from './names.js';
import type { JsonObject, RawJson } from './raw-json.js';
import { heldJob } from './runner-messages.js';

const heldJobs = z.array(heldJob).max(4_096);

export const welcome = z.object({
  runnerId: name,
  kind: name,
  orgId: orElse(z.string().nullable(), null),
  protocolVersion: protocolVersionText,
  heartbeatSec: orElse(positive, HEARTBEAT_SEC),
  deadAfterSec: orElse(positive, DEAD_AFTER_SEC),
  maxInlineBytes: orElse(positive, MAX_PAYLOAD_BYTES),
  gatewayInstance: orElse(z.string(), ''),
  serverTime: orElse(z.string(), ''),
  resumed: orElse(heldJobs, []),
  minAgentVersion: absent(name),
});
/** `orgId` is null for the pool; `gatewayInstance` and `serverTime` are empty when the gateway did not say. */
export type Welcome = z.infer<typeof welcome>;
export const welcomeOut = z.strictObject({
  runnerId: name,
  kind: z.enum(RUNNER_KINDS),
  orgId: name.nullable(),
  protocolVersion: protocolVersionText,
  heartbeatSec: positive,
  deadAfterSec: positive,
  maxInlineBytes: positive,
  gatewayInstance: name,
  serverTime: timestamp,
  resumed: z.array(z.strictObject(heldJob.shape)).max(4_096),
  minAgentVersion: name.optional(),
});
export type WelcomeOut = z.input<typeof welcomeOut>;

const leaseAnswer = { jobId: idText, ok: z.boolean() };
export const gatewayHeartbeat = z.object({
  serverTime: orElse(z.string(), ''),
  leases: orElse(z.array(z.object(leaseAnswer)).max(4_096), []),
});
/** `ok: false` means the lease is lost: the runner stops that job and sends nothing more with that epoch. */
export type GatewayHeartbeat = z.infer<typeof gatewayHeartbeat>;
export const gatewayHeartbeatOut = z.strictObject({
  serverTime: timestamp,
  leases: z.array(z.strictObject(leaseAnswer)).max(4_096),
});

const assignLimits = z.object({ maxOutputBytes: unlessZero, idleTimeoutSec: unlessZero });
const assignRequires = z
  .object({ runtimeImageDigest: absent(name), fontsetVersion: absent(name) })
  .catchall(z.unknown());

export const assign = z.object({
  jobType: name,
  leaseEpoch: count,
  jobToken: jobTokenText,
  attempt: orElse(count, 0),
  timeoutSec: unlessZero.transform((value) => value ?? MAX_SESSION_SEC),
  limits: orElse(assignLimits, { maxOutputBytes: undefined, idleTimeoutSec: undefined }),
  requires: orElse(assignRequires, { runtimeImageDigest: undefined, fontsetVersion: undefined }),
  spec: orElse(jsonObject, {}),
  orgId: absent(name),
});
/**
 * A `timeoutSec` that is left out is the longest session there is; limits that are left out (or 0, or null) are undefined. `requires` keeps pins this
 * version does not know, so that a runner can see that it does not know them.
 */
export type Assign = z.infer<typeof assign>;
export const assignOut = z.strictObject({
  jobType: name,
  leaseEpoch: count,
  jobToken: jobTokenText,
  attempt: count,
  timeoutSec: positive,
  limits: z.strictObject({ maxOutputBytes: count, idleTimeoutSec: positive }),
  requires: z
    .object({ runtimeImageDigest: name.nullable().optional(), fontsetVersion: name.nullable().optional() })
    .catchall(z.unknown()),
  spec: jsonObject,
  orgId: name,
});
export type AssignOut = Omit<z.input<typeof assignOut>, 'spec'> & { readonly spec: JsonObject | RawJson };

export const opRequest = z.object({
  opId: opIdText,
  op: z.string().min(1).max(256),
  args: orElse(jsonObject, {}),
  timeoutSec: unlessZero,
});
/** `timeoutSec` is undefined when the gateway sent none; the job's own limit holds then. */
export type OpRequest = z.infer<typeof opRequest>;
export const opRequestOut = z.strictObject({ opId: opIdText, op: name, args: jsonObject, timeoutSec: positive });
export type OpRequestOut = Omit<z.input<typeof opRequestOut>, 'args'> & { readonly args: JsonObject | RawJson };

export const cancel = z.object({ reason: orElse(name, 'unspecified'), graceSec: orElse(count, CANCEL_GRACE_SEC) });
/** An unknown reason still means: stop this job. */
export type Cancel = z.infer<typeof cancel>;
export const cancelOut = z.strictObject({ reason: z.enum(CANCEL_REASONS), graceSec: count });
export type CancelOut = z.input<typeof cancelOut>;

export const gatewayDrain = z.object({ reason: orElse(prose, ''), deadlineSec: absent(count) });
export type GatewayDrain = z.infer<typeof gatewayDrain>;

export const gatewayBye = z.object({ reason: orElse(prose, '') });
export type GatewayBye = z.infer<typeof gatewayBye>;
