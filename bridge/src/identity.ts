/**
 * Who says hello: a paired device with its Ed25519 key, or a pool worker with the pool credential (Connection handshake and authentication).
 * Secrets come from files only their owner can read; they are held in memory, go into hello.auth, and nowhere else.
 */
import { createPrivateKey, type KeyObject, randomBytes, sign } from 'node:crypto';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { type Auth, helloSignatureText, NONCE_MIN_BYTES } from '@reelhost/bridge-protocol';
import { ConfigError } from './config-error.js';

/** Makes the `auth` of one hello. */
export type Identity = {
  readonly kind: 'device' | 'pool';
  /** Device id or worker name. */
  readonly name: string;
  readonly authFor: (gatewayHost: string, wallMs: number) => Auth;
};

/** A device with its private key in PKCS#8 PEM. @throws ConfigError when the file cannot be used. */
export function deviceIdentity(deviceId: string, keyFile: string): Identity {
  const pem = readSecretFile(keyFile, '--device-key');
  let key: KeyObject;
  try {
    key = createPrivateKey({ key: pem, format: 'pem' });
  } catch {
    throw new ConfigError(
      `--device-key: ${keyFile} holds no private key in PEM; make one with \`reelhost device init --out FILE\``,
    );
  }
  if (key.asymmetricKeyType !== 'ed25519') {
    throw new ConfigError(
      `--device-key: ${keyFile} holds a ${key.asymmetricKeyType ?? 'different'} key; Ed25519 is needed`,
    );
  }
  return {
    kind: 'device',
    name: deviceId,
    authFor: (gatewayHost, wallMs) => {
      const ts = new Date(wallMs).toISOString();
      const nonce = randomBytes(NONCE_MIN_BYTES * 2).toString('base64url');
      const text = helloSignatureText(deviceId, ts, nonce, gatewayHost);
      return {
        kind: 'device',
        deviceId,
        ts,
        nonce,
        sig: sign(null, Buffer.from(text, 'utf8'), key).toString('base64url'),
      };
    },
  };
}

/** A pool worker. The file is read again for each hello, so that a rotated credential needs no restart. @throws ConfigError */
export function poolIdentity(workerName: string, credentialFile: string): Identity {
  const read = (): string => {
    const credential = readSecretFile(credentialFile, '--pool-credential-file').trim();
    if (credential === '') throw new ConfigError(`--pool-credential-file: ${credentialFile} is empty`);
    return credential;
  };
  read();
  return { kind: 'pool', name: workerName, authFor: () => ({ kind: 'pool', credential: read(), workerName }) };
}

/** Reads a file that nobody else may read; looks at the opened file, not at the name. */
function readSecretFile(path: string, option: string): string {
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    const hint =
      option === '--device-key' && codeOf(error) === 'ENOENT' ? `; reelhost device init --out ${path} makes one` : '';
    throw new ConfigError(`${option}: ${path} cannot be read (${codeOf(error)})${hint}`, error);
  }
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) throw new ConfigError(`${option}: ${path} is not a regular file`);
    if ((stat.mode & 0o077) !== 0) {
      const mode = (stat.mode & 0o777).toString(8).padStart(4, '0');
      throw new ConfigError(`${option}: ${path} can be read by others (mode ${mode}); run: chmod 600 ${path}`);
    }
    const own = process.geteuid?.();
    if (own !== undefined && stat.uid !== own && own !== 0) {
      throw new ConfigError(`${option}: ${path} belongs to another user`);
    }
    return readFileSync(file, 'utf8');
  } finally {
    closeSync(file);
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
}
