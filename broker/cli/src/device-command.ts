/** `reelhost device init`: makes the key and prints what has to be registered at the gateway. */
import { createDeviceKey } from './device-key.js';
import { print, printJson, remark } from './terminal.js';

/** Prints the public key on stdout, so that it can be piped; remarks go to stderr. */
export async function deviceInit(options: { out: string; json?: boolean }): Promise<number> {
  const key = await createDeviceKey(options.out);
  if (options.json === true) {
    printJson({ schema: 'reelhost.device/1', ...key });
    return 0;
  }
  print(key.publicKey);
  remark(
    `The private key is in ${key.file}, readable by you only. Register the line above at your gateway as this device's public key.`,
  );
  return 0;
}
