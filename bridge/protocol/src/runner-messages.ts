/**
 * What a runner sends: the payload of each type with direction "R to G" (Message catalogue, payload shapes).
 *
 * Two schemas per type. `…Out` is what we write: known values only, no field the document does not name. The other one is what a gateway reads: the
 * same required fields, unknown fields ignored, open sets of strings kept as they are.
 */
import { z } from 'zod';
import {
  absent,
  count,
  idText,
  jobTokenText,
  jsonObject,
  name,
  nonceText,
  opIdText,
  prose,
  protocolVersionText,
  signatureText,
  timestamp,
} from './fields.js';
import {
  ARCHITECTURES,
  COMPLETE_OUTCOMES,
  CONTAINER_MODES,
  CONTAINERLESS_JOB_TYPES,
  CONTAINERS,
  FAIL_CLASSES,
  JOB_TYPES,
  OPERATING_SYSTEMS,
  REJECT_REASONS,
} from './names.js';
import type { JsonObject, RawJson } from './raw-json.js';

/** A job as hello and heartbeats list it. */
export const heldJob = z.object({ jobId: idText, leaseEpoch: count });
export type HeldJob = z.infer<typeof heldJob>;
const heldJobOut = z.strictObject(heldJob.shape);

const capabilityFields = {
  protocolVersion: protocolVersionText,
  agentVersion: name,
  slots: count,
  runtimeImageDigest: name.nullable(),
  ffmpegVersion: z.string().max(256),
  fontsetVersion: z.string().max(256),
  maxOutputBytes: count,
};

/** `hello.capabilities` as a gateway reads it (Capabilities): self-reported, so untrusted. */
export const capabilities = z.object({
  ...capabilityFields,
  os: name,
  arch: name,
  container: name,
  containerMode: absent(name),
  jobTypes: z.array(name).max(256),
});
export type Capabilities = z.infer<typeof capabilities>;

const capabilitiesOut = z.strictObject({
  ...capabilityFields,
  os: z.enum(OPERATING_SYSTEMS),
  arch: z.enum(ARCHITECTURES),
  container: z.enum(CONTAINERS),
  containerMode: z.enum(CONTAINER_MODES).optional(),
  jobTypes: z.array(z.enum(JOB_TYPES)).max(JOB_TYPES.length),
});

/**
 * The rules of the Capabilities section that one set of capabilities breaks, as sentences; empty when it keeps them all.
 * A runner asks before it says hello; a gateway may ask, and must then still serve the runner: a lie only hurts the liar.
 */
export function capabilityViolations(claimed: {
  readonly container: string;
  readonly runtimeImageDigest: string | null;
  readonly jobTypes: readonly string[];
}): string[] {
  if (claimed.container !== 'none') return [];
  const allowed: ReadonlySet<string> = new Set(CONTAINERLESS_JOB_TYPES);
  const excess = claimed.jobTypes.filter((jobType) => !allowed.has(jobType));
  const found = excess.map((jobType) => `container "none" must not advertise ${jobType}`);
  if (claimed.runtimeImageDigest !== null) found.push('container "none" has no runtimeImageDigest: it must be null');
  return found;
}

const deviceFields = {
  kind: z.literal('device'),
  deviceId: idText,
  ts: timestamp,
  nonce: nonceText,
  sig: signatureText,
};
const poolFields = { kind: z.literal('pool'), credential: z.string().min(1).max(4_096), workerName: name };

/** `hello.auth`: a desktop device with its signature, or a cloud pool worker with the pool credential. Both hold a secret: never logged. */
export const auth = z.discriminatedUnion('kind', [z.object(deviceFields), z.object(poolFields)]);
export type Auth = z.infer<typeof auth>;
export type DeviceAuth = Extract<Auth, { kind: 'device' }>;
export type PoolAuth = Extract<Auth, { kind: 'pool' }>;

export const hello = z.object({
  protocolVersion: protocolVersionText,
  auth,
  capabilities,
  running: absent(z.array(heldJob).max(4_096)),
});
export type Hello = z.infer<typeof hello>;
export const helloOut = z.strictObject({
  protocolVersion: protocolVersionText,
  auth: z.discriminatedUnion('kind', [z.strictObject(deviceFields), z.strictObject(poolFields)]),
  capabilities: capabilitiesOut.refine((claimed) => capabilityViolations(claimed).length === 0, {
    error: 'container "none" allows only the media job types and no runtimeImageDigest',
  }),
  running: z.array(heldJobOut).max(4_096).optional(),
});
export type HelloOut = z.input<typeof helloOut>;

export const runnerHeartbeat = z.object({ freeSlots: count, running: z.array(heldJob).max(4_096) });
export type RunnerHeartbeat = z.infer<typeof runnerHeartbeat>;
export const runnerHeartbeatOut = z.strictObject({ freeSlots: count, running: z.array(heldJobOut).max(4_096) });

export const ready = z.object({ freeSlots: count });
export type Ready = z.infer<typeof ready>;
export const readyOut = z.strictObject(ready.shape);

/** What every job-scoped message of a runner carries, and what it is fenced by. */
const fence = { leaseEpoch: count, jobToken: jobTokenText };
export type Fence = { readonly leaseEpoch: number; readonly jobToken: string };

export const accept = z.object(fence);
export type Accept = z.infer<typeof accept>;
export const acceptOut = z.strictObject(fence);

export const reject = z.object({ ...fence, reason: name, message: absent(prose) });
export type Reject = z.infer<typeof reject>;
export const rejectOut = z.strictObject({ ...fence, reason: z.enum(REJECT_REASONS), message: prose.optional() });
export type RejectOut = z.input<typeof rejectOut>;

const percent = z.number().min(0).max(100);

export const progress = z.object({
  ...fence,
  opId: absent(opIdText),
  stage: name,
  percent: absent(percent),
  detail: absent(prose),
});
export type Progress = z.infer<typeof progress>;
export const progressOut = z.strictObject({
  ...fence,
  opId: opIdText.optional(),
  stage: name,
  percent: percent.optional(),
  detail: prose.optional(),
});
export type ProgressOut = z.input<typeof progressOut>;

const opErrorFields = { code: name, message: prose, retryable: z.boolean() };

/** The error of one op. `code` is an open set; see OP_ERROR_CODES. */
export const opError = z.object(opErrorFields);
export type OpError = z.infer<typeof opError>;

export const opResponse = z.discriminatedUnion('ok', [
  z.object({ ...fence, opId: opIdText, ok: z.literal(true), result: jsonObject, error: absent(z.never()) }),
  z.object({ ...fence, opId: opIdText, ok: z.literal(false), error: opError, result: absent(z.never()) }),
]);
export type OpResponse = z.infer<typeof opResponse>;
export const opResponseOut = z.discriminatedUnion('ok', [
  z.strictObject({ ...fence, opId: opIdText, ok: z.literal(true), result: jsonObject }),
  z.strictObject({ ...fence, opId: opIdText, ok: z.literal(false), error: z.strictObject(opErrorFields) }),
]);
/** An op.response to write: exactly one of `result` (an object, or its JSON text) and `error`. */
export type OpResponseOut = Fence & { readonly opId: string } & (
    | { readonly ok: true; readonly result: JsonObject | RawJson }
    | { readonly ok: false; readonly error: OpError }
  );

export const complete = z.object({
  ...fence,
  outcome: name,
  result: absent(jsonObject),
  metrics: absent(jsonObject),
});
export type Complete = z.infer<typeof complete>;
export const completeOut = z.strictObject({
  ...fence,
  outcome: z.enum(COMPLETE_OUTCOMES),
  result: jsonObject.optional(),
  metrics: jsonObject.optional(),
});
export type CompleteOut = z.input<typeof completeOut>;

const failFields = { ...fence, code: name, message: prose, retryable: z.boolean() };
export const fail = z.object({ ...failFields, class: name });
export type Fail = z.infer<typeof fail>;
export const failOut = z.strictObject({ ...failFields, class: z.enum(FAIL_CLASSES) });
export type FailOut = z.input<typeof failOut>;

export const drain = z.object({ reason: name, deadlineSec: absent(count) });
export type Drain = z.infer<typeof drain>;
export const drainOut = z.strictObject({ reason: name, deadlineSec: count.optional() });
export type DrainOut = z.input<typeof drainOut>;

export const bye = z.object({ reason: name });
export type Bye = z.infer<typeof bye>;
export const byeOut = z.strictObject({ reason: name });
