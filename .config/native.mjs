/**
 * Sees to it that better-sqlite3, the one native module, can be loaded by this Node; part of every build, and done in a moment when it can. Else: take the prebuilt
 * binary of its maker, or compile it, with the headers that lie beside Node when there are any. npm would run the package's own install script for this, which
 * downloads the headers in any case and so fails on a machine that reaches nothing but a package registry; that script is switched off (allowScripts).
 */
import { spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);
const folder = dirname(require.resolve('better-sqlite3/package.json'));

/** Whether it works, asked in a process of its own: a module that was loaded in vain cannot be loaded again. */
function works() {
  const script = "new (require('better-sqlite3'))(':memory:').close()";
  return spawnSync(process.execPath, ['-e', script], { cwd: folder, stdio: 'ignore' }).status === 0;
}

function run(script, args) {
  return spawnSync(process.execPath, [script, ...args], { cwd: folder, stdio: ['ignore', 2, 2] }).status === 0;
}

function download() {
  return run(createRequire(join(folder, 'package.json')).resolve('prebuild-install/bin.js'), []);
}

function compile() {
  const npm = process.env.npm_execpath ?? join(dirname(process.execPath), 'npm');
  const nodeGyp = createRequire(realpathSync(npm)).resolve('node-gyp/bin/node-gyp.js');
  const prefix = dirname(dirname(realpathSync(process.execPath)));
  const hasHeaders = existsSync(join(prefix, 'include', 'node', 'node_api.h'));
  const chosen = process.env.npm_config_nodedir ?? (hasHeaders ? prefix : undefined);
  return run(nodeGyp, ['rebuild', '--release', '--jobs=max', ...(chosen === undefined ? [] : [`--nodedir=${chosen}`])]);
}

if (!works()) {
  process.stderr.write('better-sqlite3: looking for a prebuilt binary, else compiling it (about two minutes, once)\n');
  if (!(download() && works()) && !(compile() && works())) {
    process.stderr.write(
      'better-sqlite3 could be neither downloaded nor compiled. Compiling needs Python 3, make and a C++ compiler (apt install build-essential python3; xcode-select --install).\n',
    );
    process.exitCode = 1;
  }
}
