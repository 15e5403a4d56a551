/**
 * Makes of each program's modules, and of what they import, a bundle in its `dist/bundle/`, for a fast start and a small process (docs/adr/0013); with it a code
 * cache, the list of its inputs and the licenses of what is in it. The native module and the other programs stay outside. Part of every build; nothing is done
 * when nothing has changed. `--clean` removes what it makes.
 */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const LOCK = join(ROOT, 'node_modules', '.package-lock.json');
const OWN = ['bundle.mjs', 'bundle/launch.cjs', 'bundle/warm-up.mjs'].map((file) =>
  fileURLToPath(new URL(file, import.meta.url)),
);
const [, LAUNCH, WARM_UP] = OWN;

/** The programs, each before those that start it. */
const PROGRAMS = ['broker', 'bridge', 'broker/cli'];
const OUTSIDE = ['better-sqlite3', '@reelhost/broker/main', '@reelhost/bridge/main'].concat(
  ['main', 'argv-check', 'sandbox-report'].map((name) => `@reelhost/executor-ffmpeg/${name}`),
);

function isFresh(bundle) {
  try {
    const { mtimeMs } = statSync(join(bundle, 'main.cjs'));
    const { node, builds } = JSON.parse(readFileSync(join(bundle, 'inputs.json'), 'utf8'));
    const inputs = [...builds.map((build) => join(bundle, build)), LOCK, ...OWN];
    return node === process.version && inputs.every((input) => statSync(input).mtimeMs <= mtimeMs);
  } catch {
    return false;
  }
}

/** Name and license text of every package from the registry that these files belong to. */
function licenses(files) {
  const marker = `${sep}node_modules${sep}`;
  const folders = new Set();
  for (const file of files) {
    const at = file.lastIndexOf(marker);
    if (at < 0) continue;
    const [scope, name] = file.slice(at + marker.length).split(sep);
    folders.add(file.slice(0, at + marker.length) + (scope.startsWith('@') ? join(scope, name) : scope));
  }
  return [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const text = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
    return `${name} ${version} (${license})\n\n${text === undefined ? '' : readFileSync(join(folder, text), 'utf8').trim()}\n`;
  });
}

/** The record of the compiler's run that made a file of ours; undefined for a file of others. */
function buildOf(file) {
  if (file.includes(`${sep}node_modules${sep}`)) return undefined;
  for (let folder = dirname(file); folder.startsWith(ROOT); folder = dirname(folder)) {
    const record = join(folder, '.tsbuildinfo');
    if (existsSync(record)) return record;
  }
  return undefined;
}

/** Writes what is not ASCII as escapes: half the memory, and nothing to decode at a start. */
function asAscii(file) {
  const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  writeFileSync(file, readFileSync(file, 'utf8').replace(/[^\0-\x7f]/g, escaped));
}

async function bundle(program) {
  const dist = join(ROOT, program, 'dist');
  const place = join(dist, 'bundle');
  if (isFresh(place)) return;
  // Programs may be started meanwhile: the new bundle takes the place of the old one as a whole.
  const out = join(dist, 'bundle.new');
  rmSync(out, { recursive: true, force: true });
  const { build } = await import('vite');
  const modules = new Set();
  await build({
    configFile: false,
    logLevel: 'warn',
    root: join(ROOT, program),
    publicDir: false,
    plugins: [
      {
        name: 'inputs',
        generateBundle(_options, files) {
          for (const file of Object.values(files)) for (const id of Object.keys(file.modules ?? {})) modules.add(id);
        },
      },
    ],
    ssr: { noExternal: true, external: OUTSIDE },
    build: {
      ssr: join(dist, 'main.js'),
      outDir: out,
      emptyOutDir: false,
      minify: false,
      target: 'node20',
      rolldownOptions: {
        output: {
          format: 'cjs',
          entryFileNames: 'main.cjs',
          chunkFileNames: '[name].cjs',
          // import() does not work in what is not loaded as a module.
          dynamicImportInCjs: false,
          comments: { annotation: false, jsdoc: false, legal: true },
        },
      },
    },
  });
  for (const file of readdirSync(out)) asAscii(join(out, file));
  const files = [...modules].filter((id) => !id.startsWith('\0') && existsSync(id));
  const builds = [...new Set(files.map(buildOf))].filter((record) => record !== undefined);
  writeFileSync(join(out, 'licenses.txt'), licenses(files).join(`\n${'-'.repeat(80)}\n\n`));
  const inputs = { node: process.version, builds: builds.map((record) => relative(out, record)).sort() };
  writeFileSync(join(out, 'inputs.json'), JSON.stringify(inputs));
  copyFileSync(LAUNCH, join(dist, 'launch.cjs'));
  rmSync(place, { recursive: true, force: true });
  renameSync(out, place);
  const warmUp = spawnSync(process.execPath, [WARM_UP, dist], {
    stdio: ['ignore', 'ignore', 'pipe'],
    encoding: 'utf8',
    timeout: 60_000,
  });
  if (warmUp.status !== 0) throw new Error(`${program} could not be tried out:\n${warmUp.stderr}`);
}

for (const program of PROGRAMS) {
  if (process.argv[2] !== '--clean') {
    await bundle(program);
    continue;
  }
  for (const made of ['bundle', 'launch.cjs'])
    rmSync(join(ROOT, program, 'dist', made), { recursive: true, force: true });
}
