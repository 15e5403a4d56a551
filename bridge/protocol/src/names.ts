/**
 * Every name of the wire language: message types, job types, op names, reasons, classes, error codes, close codes.
 *
 * The sets that the specification calls open (Versioning and compatibility) are listed for what we *send* and for telling a known value from
 * an unknown one. What we *receive* in such a place is any string; nothing here may be used to refuse an inbound message.
 */

/** The WebSocket subprotocol (Transport and envelope). */
export const SUBPROTOCOL = 'reelbolt.runner.v1';

/** The envelope's major version, field `v`. */
export const ENVELOPE_VERSION = 1;

/** What `hello.protocolVersion` says: major.minor. */
export const PROTOCOL_VERSION = '1.0';

/** The path a runner dials at the gateway's host. */
export const CONNECT_PATH = '/v1/connect';

/** The fifteen message types, in the order of the message catalogue. */
export const MESSAGE_TYPES = [
  'hello',
  'welcome',
  'heartbeat',
  'ready',
  'assign',
  'accept',
  'reject',
  'progress',
  'op.request',
  'op.response',
  'complete',
  'fail',
  'cancel',
  'drain',
  'bye',
] as const;
export type MessageType = (typeof MESSAGE_TYPES)[number];

/** Who sends: `runnerToGateway` is "R to G" of the catalogue, `gatewayToRunner` is "G to R". */
export type Direction = 'runnerToGateway' | 'gatewayToRunner';

/** `connection`: no ids; `job`: jobId; `session`: jobId and sessionId. */
export type Scope = 'connection' | 'job' | 'session';

/** The scope column of the message catalogue. op.response is a session message that also is fenced like a job message. */
export const MESSAGE_SCOPES: Readonly<Record<MessageType, Scope>> = {
  hello: 'connection',
  welcome: 'connection',
  heartbeat: 'connection',
  ready: 'connection',
  assign: 'job',
  accept: 'job',
  reject: 'job',
  progress: 'job',
  'op.request': 'session',
  'op.response': 'session',
  complete: 'job',
  fail: 'job',
  cancel: 'job',
  drain: 'connection',
  bye: 'connection',
};

/** The direction column of the message catalogue. */
export const MESSAGE_DIRECTIONS: Readonly<Record<MessageType, readonly Direction[]>> = {
  hello: ['runnerToGateway'],
  welcome: ['gatewayToRunner'],
  heartbeat: ['runnerToGateway', 'gatewayToRunner'],
  ready: ['runnerToGateway'],
  assign: ['gatewayToRunner'],
  accept: ['runnerToGateway'],
  reject: ['runnerToGateway'],
  progress: ['runnerToGateway'],
  'op.request': ['gatewayToRunner'],
  'op.response': ['runnerToGateway'],
  complete: ['runnerToGateway'],
  fail: ['runnerToGateway'],
  cancel: ['gatewayToRunner'],
  drain: ['runnerToGateway', 'gatewayToRunner'],
  bye: ['runnerToGateway', 'gatewayToRunner'],
};

/** The job types of v1 (Job types). An open set. */
export const JOB_TYPES = ['remotion.workspace-session', 'video.compile', 'video.analyze.extract'] as const;
export type JobType = (typeof JOB_TYPES)[number];

/** The only job types a runner with `container: "none"` may advertise (Capabilities, rules). */
export const CONTAINERLESS_JOB_TYPES = ['video.compile', 'video.analyze.extract'] as const;

/** Ops of a remotion.workspace-session. An open set. */
export const REMOTION_OPS = [
  'writeFile',
  'readFile',
  'listFiles',
  'deletePath',
  'exec',
  'status',
  'stage',
  'publish',
  'render',
  'hydrate',
  'close',
] as const;
export type RemotionOp = (typeof REMOTION_OPS)[number];

/** Ops of video.compile and video.analyze.extract. An open set. */
export const MEDIA_OPS = ['stage', 'ffmpeg', 'ffprobe', 'read', 'publish', 'stat', 'close'] as const;
export type MediaOp = (typeof MEDIA_OPS)[number];
export type Op = RemotionOp | MediaOp;

/** The op set of each job type of v1. */
export const OPS_OF_JOB_TYPE: Readonly<Record<JobType, readonly Op[]>> = {
  'remotion.workspace-session': REMOTION_OPS,
  'video.compile': MEDIA_OPS,
  'video.analyze.extract': MEDIA_OPS,
};

/** `error.code` of an op.response (Error and failure classes). An open set. */
export const OP_ERROR_CODES = [
  'invalid_path',
  'argv_not_allowed',
  'exec_not_allowed',
  'file_too_large',
  'output_too_large',
  'unsupported_op',
  'op_expired',
  'op_in_flight',
  'stage_failed',
  'publish_failed',
  'timeout',
  'container_unavailable',
  'disk_full',
  'cancelled',
] as const;

/** `reason` of a reject. An open set for a receiver; a runner sends only these. */
export const REJECT_REASONS = [
  'busy',
  'capability_mismatch',
  'shutting_down',
  'paused_by_user',
  'no_container_runtime',
] as const;
export type RejectReason = (typeof REJECT_REASONS)[number];

/** `reason` of a cancel. An open set for a runner. */
export const CANCEL_REASONS = ['user', 'execution_ended', 'lease_lost', 'revoked', 'shutdown'] as const;

/** `class` of a fail, as the document lists them. An honest runner never claims `platform` (Error and failure classes). */
export const FAIL_CLASSES = ['platform', 'runner', 'input'] as const;

/** `outcome` of a complete. */
export const COMPLETE_OUTCOMES = ['succeeded', 'cancelled'] as const;

/** `kind` of welcome. */
export const RUNNER_KINDS = ['Desktop', 'CloudPool'] as const;

/** `capabilities.os`, `.arch`, `.container`, `.containerMode`: what we send. Open sets for a receiver. */
export const OPERATING_SYSTEMS = ['linux', 'darwin', 'windows'] as const;
export const ARCHITECTURES = ['amd64', 'arm64'] as const;
export const CONTAINERS = ['none', 'docker', 'podman'] as const;
export const CONTAINER_MODES = ['rootful', 'rootless', 'vm'] as const;

/** The WebSocket close codes of the protocol (Transport and envelope). */
export const CLOSE_CODES = {
  normal: 1000,
  goingAway: 1001,
  tooLarge: 1009,
  badHello: 4400,
  unauthenticated: 4401,
  forbidden: 4403,
  heartbeatTimeout: 4408,
  superseded: 4409,
  rateLimited: 4429,
} as const;
export type CloseName = keyof typeof CLOSE_CODES;
export type CloseCode = (typeof CLOSE_CODES)[CloseName];

function memberOf<const T extends readonly string[]>(values: T): (text: string) => text is T[number] {
  const set: ReadonlySet<string> = new Set(values);
  return (text): text is T[number] => set.has(text);
}

/** True for one of the fifteen types; a message of any other type is ignored. */
export const isMessageType = memberOf(MESSAGE_TYPES);
/** True for a job type of v1; any other is a job this runner does not know (reject `capability_mismatch`). */
export const isKnownJobType = memberOf(JOB_TYPES);
