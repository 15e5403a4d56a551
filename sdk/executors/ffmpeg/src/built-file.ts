/**
 * Finds a file of this package that node must start by itself (a process or a worker thread). Run from the source, as tests do, the built one is taken:
 * node cannot start TypeScript.
 */
import { existsSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** `name` is relative to the module at `from`, e.g. `./guardian-main.js`. */
export function builtFile(name: string, from: string): URL {
  const beside = new URL(name, from);
  const path = fileURLToPath(beside);
  return existsSync(path)
    ? beside
    : pathToFileURL(path.replace(/([/\\]executors[/\\]ffmpeg[/\\])src([/\\])/, '$1dist$2'));
}
