/** The file behind the command `reelhost`, for starting it again as a child. Lies beside main.ts, because the bundle sees all places from there. */
import { fileURLToPath } from 'node:url';

/** Absolute path of `bin/reelhost.js`. */
export const COMMAND_FILE = fileURLToPath(new URL('../bin/reelhost.js', import.meta.url));
