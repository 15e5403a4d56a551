/**
 * The kinds of value that fields of the wire language have, each in the two moods of this package: strict for what is written, and for
 * what a runner sends to a gateway; lenient (`absent`, `orElse`) where a gateway of another make may write null, or leave a field out.
 */
import { z } from 'zod';
import { NONCE_MIN_BYTES } from './limits.js';
import { isJsonObject, type JsonObject } from './raw-json.js';

/** A name, code or version: never empty, and short enough to be logged. */
export const name = z.string().min(1).max(256);

/** {@link name} for the envelope of every message: a schema costs ten times as much. */
export function isName(value: unknown): boolean {
  return typeof value === 'string' && value.length >= 1 && value.length <= 256;
}

/** Text for people; may be empty. */
export const prose = z.string().max(65_536);

const ID = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;

/**
 * An id of a job, session, op or runner. The document says UUID for jobId and sessionId; ids are compared and echoed, never parsed, so any token
 * of harmless characters is taken: no separator of paths, no white space, no control character.
 */
export const idText = z.string().regex(ID);

/** {@link idText} for the envelope of every message. */
export function isId(value: unknown): boolean {
  return typeof value === 'string' && ID.test(value);
}

/**
 * An opId is chosen by the engine, and the document says nothing of its form: any text that is a key, echoed as it came. Only half a surrogate pair is
 * refused, because it has no UTF-8 form of its own.
 */
export const opIdText = z
  .string()
  .min(1)
  .max(256)
  .regex(/^\P{Cs}+$/u);

/** Counts, byte counts, epochs, durations in whole seconds: integers from 0 that a double holds exactly. */
export const count = z.int().min(0);

/** A duration or a limit that cannot be 0. */
export const positive = z.int().min(1);

/** RFC 3339 in UTC, with any number of decimals. */
export const timestamp = z
  .string()
  .regex(/^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?Z$/);

/** SHA-256 as lower-case hex. */
export const sha256Hex = z.string().regex(/^[0-9a-f]{64}$/);

/** A signed statement that is opaque to a runner. A bearer secret: never logged. */
export const jobTokenText = z.string().min(1).max(16_384);

/** At least 16 random bytes as base64url; 22 characters hold them. */
export const nonceText = z.string().regex(new RegExp(`^[A-Za-z0-9_-]{${Math.ceil((NONCE_MIN_BYTES * 8) / 6)},256}$`));

/** An Ed25519 signature, 64 bytes, as base64url. */
export const signatureText = z.string().regex(/^[A-Za-z0-9_-]{86}(==)?$/);

/** "major.minor". */
export const protocolVersionText = z.string().regex(/^\d{1,4}\.\d{1,4}$/);

/** Any JSON object, kept as it is. */
export const jsonObject = z.custom<JsonObject>(isJsonObject, { error: 'must be an object' });

/** Optional, and null counts as left out. */
export function absent<T extends z.ZodType>(schema: T) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/** Left out or null means `fallback`. */
export function orElse<T extends z.ZodType>(schema: T, fallback: z.output<T>) {
  return schema.nullish().transform((value) => value ?? fallback);
}

/** A limit or duration of a gateway: left out, null and 0 all say that there is none; a fraction is rounded up to a whole unit. */
export const unlessZero = z
  .number()
  .min(0)
  .max(Number.MAX_SAFE_INTEGER)
  .nullish()
  .transform((value) => (value === null || value === undefined || value === 0 ? undefined : Math.ceil(value)));
