'use strict';
/**
 * Loads a program from the bundle in the folder beside this file, or from its single modules where one of them is newer than the bundle, as in the midst of a
 * change. The build puts it into `dist/` (see bundle.mjs).
 *
 * A file of the bundle may have a code cache beside it: what V8 made of the file when it was built, so that nothing has to be compiled at a start. A cache that
 * does not belong to the file, or is damaged, is not shown to V8, which would believe it; V8 itself refuses one of another version or of other flags. Without a
 * usable cache a start only takes longer.
 */
const { createHash } = require('node:crypto');
const { readFileSync, statSync } = require('node:fs');
const { createRequire } = require('node:module');
const { join } = require('node:path');
const { Script } = require('node:vm');

const BUNDLE = join(__dirname, 'bundle');
const ENTRY = 'main.cjs';
const DIGEST_BYTES = 32;

/** What modules derive from their own place is right as seen from `dist/`. */
const requireOutside = createRequire(join(__dirname, 'main.js'));

/** The files of the bundle that were loaded: name → source, script, module. */
const chunks = new Map();
exports.chunks = chunks;

/** The exports of the program. */
exports.load = () => (isFresh() ? requireChunk(ENTRY) : requireOutside('./main.js'));

/** Writes the code caches of all files loaded so far, with the functions that were in use. @param write gets the path and the content of each */
exports.saveCodeCaches = (write) => {
  for (const [name, { source, script }] of chunks) {
    const data = script.createCachedData();
    write(cachePath(name), Buffer.concat([digest(source, data), data]));
  }
};

/** Whether the bundle is there and nothing it was made of was built again since. What is not there, as in a published package, was not. */
function isFresh() {
  try {
    const { mtimeMs } = statSync(join(BUNDLE, ENTRY));
    const { builds } = JSON.parse(readFileSync(join(BUNDLE, 'inputs.json'), 'utf8'));
    return builds.every((build) => !(statSync(join(BUNDLE, build), { throwIfNoEntry: false })?.mtimeMs > mtimeMs));
  } catch {
    return false;
  }
}

function requireChunk(name) {
  const loaded = chunks.get(name);
  if (loaded !== undefined) return loaded.module.exports;
  const path = join(BUNDLE, name);
  const source = readFileSync(path);
  const code = `(function (exports, require, module, __filename) {${source.toString('latin1')}\n})`;
  const script = new Script(code, { filename: path, cachedData: readCodeCache(name, source) });
  const module = { exports: {} };
  chunks.set(name, { source, script, module });
  script.runInThisContext()(module.exports, requireFrom, module, join(__dirname, 'main.js'));
  return module.exports;
}

function requireFrom(id) {
  return id.startsWith('./') ? requireChunk(id.slice(2)) : requireOutside(id);
}

function readCodeCache(name, source) {
  try {
    const file = readFileSync(cachePath(name));
    const data = file.subarray(DIGEST_BYTES);
    return digest(source, data).equals(file.subarray(0, DIGEST_BYTES)) ? data : undefined;
  } catch {
    return undefined;
  }
}

function cachePath(name) {
  return join(BUNDLE, `${name}.cache`);
}

function digest(source, data) {
  return createHash('sha256').update(source).update(data).digest();
}
