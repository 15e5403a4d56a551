/**
 * Makes the key that identifies this computer to a gateway: Ed25519, PKCS#8 PEM, readable by its owner only. The private key never leaves the file;
 * the public key is what one registers at the gateway. An existing file is never touched.
 */
import { generateKeyPairSync } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makePrivateFolder } from '@reelhost/log/private-folder';
import { CommandError, ExitCode } from './exit-codes.js';
import { expandHome } from './paths.js';

/** The public half, in the two forms gateways take. */
export interface DevicePublicKey {
  /** Absolute path of the private key's file. */
  readonly file: string;
  /** The raw 32 bytes, base64url without padding. */
  readonly publicKey: string;
  /** SubjectPublicKeyInfo, PEM. */
  readonly publicKeyPem: string;
}

/**
 * Creates the key.
 * @param out where; `~/` is understood, missing folders are made (0700)
 * @throws CommandError usage when the file exists, unexpected when it cannot be written
 */
export async function createDeviceKey(out: string): Promise<DevicePublicKey> {
  const file = expandHome(out);
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  try {
    makePrivateFolder(dirname(file));
    // O_EXCL also refuses a symbolic link, whatever it points to.
    const handle = await open(file, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
    try {
      await handle.writeFile(privateKey.export({ format: 'pem', type: 'pkcs8' }));
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && path === file) {
      throw new CommandError(
        ExitCode.usage,
        `${file} exists and is left as it is; a new key would be a new device. Choose another --out, or move the old key away first`,
      );
    }
    throw new CommandError(ExitCode.unexpected, `cannot write ${file}: ${(error as Error).message}`, { cause: error });
  }
  const raw = publicKey.export({ format: 'jwk' }).x;
  if (raw === undefined) throw new Error('the public key has no raw form');
  return { file, publicKey: raw, publicKeyPem: publicKey.export({ format: 'pem', type: 'spki' }).toString() };
}
