/**
 * The broker: as the one file that the build makes of its modules, because loading them one by one takes half of a start; or as those modules where one of them is
 * newer than that file, as in the midst of a change, or where the file was not made.
 */
import { readFileSync, statSync } from 'node:fs';

const BUNDLE = new URL('../dist/bundle.js', import.meta.url);
const INPUTS = new URL('../dist/bundle.inputs.json', import.meta.url);

/** Whether the bundle is there and nothing it was made of has changed since. What is not there (a package without its single modules) has not changed. */
function isFresh() {
  try {
    const { mtimeMs } = statSync(BUNDLE);
    const inputs = JSON.parse(readFileSync(INPUTS, 'utf8'));
    return inputs.every((input) => {
      const stat = statSync(new URL(input, INPUTS), { throwIfNoEntry: false });
      return stat === undefined || stat.mtimeMs <= mtimeMs;
    });
  } catch {
    return false;
  }
}

export const { run } = await import(isFresh() ? BUNDLE.href : '../dist/main.js');
