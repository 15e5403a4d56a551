/**
 * From bytes to inputs of the core: frames, envelopes, requests; and the end of a connection that breaks the protocol.
 *
 * Of one connection a turn takes only so many frames, for so long, and only as long as its answers are not too much: the rest is the next turn's, while the disk
 * has this one. So a peer that asks faster than it reads waits for itself and for nobody else, and what is in flight does not move as one convoy from
 * producer to disk to executor to disk, in which everybody waits for everybody: half of it is with us while the other half is with them.
 */
import { type Envelope, type ErrorCode, encodeError, parseRequest, readEnvelope, reportIds } from '@reelhost/protocol';
import { refuse } from './core/core.js';
import { type Core, framesTaken, type Peer, reportUnusable, requestReceived } from './core/index.js';
import type { Logger } from './log.js';
import type { Connection } from './socket/connection.js';

/** Frames of one connection in one turn: as many as jobs are with executors, within these bounds. A turn of fewer is not worth its commit. */
const FEWEST_FRAMES = 32;
const MOST_FRAMES = 512;
/** Characters of answers to one connection in one turn after which no more of its requests are taken. */
const ANSWERS_PER_TURN = 1_048_576;
/** The same of all connections together. */
const ALL_ANSWERS_PER_TURN = 16_777_216;

/** Time that the requests of one connection may take at a stretch, in ms; the one that exceeds it is the last. */
const TURN_MS = 25;

/** How many frames of one connection a turn takes at present. */
export function framesPerTurn(core: Core): number {
  return Math.min(Math.max(core.executions.size, FEWEST_FRAMES), MOST_FRAMES);
}

/** Handles the frames that a connection has in turn number `turn`; true when some are left for the next turn. */
export function takeFrames(core: Core, connection: Connection, peer: Peer, turn: number, log: Logger): boolean {
  const { reader } = connection;
  if (connection.turn !== turn) {
    connection.turn = turn;
    connection.framesTaken = 0;
    peer.answered = 0;
  }
  const taken = connection.framesTaken;
  const enough = framesPerTurn(core);
  const until = performance.now() + TURN_MS;
  for (; connection.reading; connection.framesTaken++) {
    if (connection.framesTaken >= enough || peer.answered > ANSWERS_PER_TURN || performance.now() > until) return true;
    if (core.answered > ALL_ANSWERS_PER_TURN) return true;
    const payload = reader.next();
    if (payload === undefined) break;
    const result = readEnvelope(payload, (peer.extension ? core.contexts.extended : core.contexts.plain).json);
    if (result.ok) handle(core, connection, peer, result.envelope, log);
    else fault(core, connection, peer, result.fault.code, result.fault.reason, log);
  }
  if (reader.fault !== undefined && connection.reading) {
    fault(core, connection, peer, reader.fault.code, reader.fault.reason, log);
  }
  framesTaken(core, peer, reader.pendingBytes > 0, connection.framesTaken > taken);
  return false;
}

function handle(core: Core, connection: Connection, peer: Peer, envelope: Envelope, log: Logger): void {
  const parsed = parseRequest(envelope, peer.extension ? core.contexts.extended : core.contexts.plain);
  if (!parsed.ok) return handleRefusal(core, connection, peer, envelope, parsed.refusal, log);
  const { request } = parsed;
  let body = '';
  if (request.type === 'enqueue') body = request.args.text;
  else if (request.type === 'succeeded') body = request.result.text;
  else if (request.type === 'failed') body = envelope.raw('error') ?? '';
  requestReceived(core, peer, { request, bodyBytes: utf8Bytes(body) });
  if (request.type === 'hello' && peer.extension)
    connection.reader.maxFrameBytes = core.settings.extensionMaxFrameBytes;
}

function handleRefusal(
  core: Core,
  connection: Connection,
  peer: Peer,
  envelope: Envelope,
  refusal: { readonly code: ErrorCode; readonly message: string; readonly fatal: boolean },
  log: Logger,
): void {
  if (refusal.fatal) return fault(core, connection, peer, refusal.code, refusal.message, log);
  const request = { request_id: envelope.requestId };
  if (peer.mode === 'new' && envelope.type !== 'hello') {
    return refuse(core, peer, request, 'hello_required', 'the first request must be hello');
  }
  if (peer.mode !== 'new' && envelope.type === 'hello') {
    return refuse(core, peer, request, 'already_hello', 'hello was already answered on this connection');
  }
  const ids = envelope.type === 'succeeded' || envelope.type === 'failed' ? reportIds(envelope) : undefined;
  if (ids !== undefined && refusal.code !== 'invalid_failure') {
    const type = refusal.code === 'result_too_large' ? 'result_invalid' : 'error_too_large';
    return reportUnusable(core, peer, { ...request, ...ids }, type, refusal.message);
  }
  refuse(core, peer, request, refusal.code, refusal.message);
}

/** The connection has broken the protocol: one uncorrelated error, then the end. */
export function fault(
  core: Core,
  connection: Connection,
  peer: Peer,
  code: ErrorCode,
  message: string,
  log: Logger,
): void {
  log.info({ event: 'peer.fault', connection: connection.id, code, reason: message });
  core.effects.push(
    { kind: 'send', to: connection.id, text: encodeError(undefined, code, { message }) },
    { kind: 'closeConnection', to: connection.id },
  );
  connection.stopReading();
  // It is given nothing more, although its last words still wait for the disk.
  peer.refusingUntil = Number.POSITIVE_INFINITY;
}

/** Bytes of a text in UTF-8, exactly only where the difference could matter. */
function utf8Bytes(text: string): number {
  return text.length < 2048 ? text.length : Buffer.byteLength(text);
}
