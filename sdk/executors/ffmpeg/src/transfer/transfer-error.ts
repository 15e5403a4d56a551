/** The ways a transfer can fail. Messages never hold a query string: presigned URLs are bearer secrets. */

/** Which rule was broken; `stage_failed` and `publish_failed` are told apart by the caller's direction. */
export type TransferCode = 'failed' | 'too_large' | 'disk_full' | 'aborted';

/** A failed transfer. `again` marks what the retry loop may repeat; `retryable` is the hint for the engine. */
export class TransferError extends Error {
  readonly code: TransferCode;
  readonly retryable: boolean;
  readonly again: boolean;
  readonly retryAfterMs: number | undefined;
  readonly detail: string | undefined;

  constructor(
    code: TransferCode,
    message: string,
    options: { retryable?: boolean; again?: boolean; retryAfterMs?: number; detail?: string; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.name = 'TransferError';
    this.code = code;
    this.again = options.again ?? false;
    this.retryable = options.retryable ?? this.again;
    this.retryAfterMs = options.retryAfterMs;
    this.detail = options.detail;
  }
}

/** Scheme, host and path of a URL; the query, the fragment and any user name are left out. */
export function redactUrl(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`;
}

const DISK_FULL = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);
const LOCAL = new Set([
  'EACCES',
  'EPERM',
  'EROFS',
  'EIO',
  'EMFILE',
  'ENFILE',
  'ENOENT',
  'ELOOP',
  'EISDIR',
  'ENOTDIR',
  'EEXIST',
  'ENAMETOOLONG',
]);

/** Sorts an error of the network or the disk: a full disk, another local fault, or a connection that may be tried again. */
export function asTransferError(error: unknown, url: URL): TransferError {
  if (error instanceof TransferError) return error;
  const { code = '', name, message } = error as NodeJS.ErrnoException;
  if (name === 'AbortError' || code === 'ABORT_ERR')
    return new TransferError('aborted', 'the transfer was stopped', { cause: error });
  if (DISK_FULL.has(code))
    return new TransferError('disk_full', `no room left on the disk (${code})`, { retryable: true, cause: error });
  if (LOCAL.has(code)) return new TransferError('failed', `the local file cannot be used (${code})`, { cause: error });
  const certificate = /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)|ALTNAME/.test(code);
  const what = certificate ? `the certificate of ${url.host} was not accepted` : `the connection to ${url.host} failed`;
  return new TransferError('failed', `${what} (${code || firstLine(message)})`, {
    again: !certificate,
    retryable: true,
    cause: error,
  });
}

function firstLine(text: string): string {
  return (text.split('\n', 1)[0] ?? '').replace(/\?\S*/g, '?…').slice(0, 160);
}
