/**
 * Makes one file of the broker's modules and of what they import, for a fast start (see broker/bin/main.js); beside it the list of its inputs and the licenses of
 * what is in it. The native module stays outside. Part of every build; nothing is done when nothing has changed.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const BROKER = join(ROOT, 'broker');
const OUT = join(BROKER, 'dist');

function isFresh() {
  try {
    const { mtimeMs } = statSync(join(OUT, 'bundle.js'));
    const inputs = JSON.parse(readFileSync(join(OUT, 'bundle.inputs.json'), 'utf8'));
    return [...inputs.map((input) => join(OUT, input)), import.meta.filename].every(
      (input) => statSync(input).mtimeMs <= mtimeMs,
    );
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

if (process.argv[2] === '--clean') {
  for (const file of ['bundle.js', 'bundle.inputs.json', 'bundle.licenses.txt'])
    rmSync(join(OUT, file), { force: true });
} else if (!isFresh()) {
  const { build } = await import('vite');
  const modules = new Set();
  await build({
    configFile: false,
    logLevel: 'warn',
    root: BROKER,
    publicDir: false,
    plugins: [
      {
        name: 'inputs',
        generateBundle(_options, bundle) {
          for (const chunk of Object.values(bundle)) for (const id of Object.keys(chunk.modules ?? {})) modules.add(id);
        },
      },
    ],
    ssr: { noExternal: true, external: ['better-sqlite3'] },
    build: {
      ssr: join(OUT, 'main.js'),
      outDir: OUT,
      emptyOutDir: false,
      minify: false,
      target: 'node20',
      rolldownOptions: {
        output: {
          entryFileNames: 'bundle.js',
          codeSplitting: false,
          comments: { annotation: false, jsdoc: false, legal: true },
        },
      },
    },
  });
  const files = [...modules].filter((id) => !id.startsWith('\0') && existsSync(id));
  writeFileSync(join(OUT, 'bundle.licenses.txt'), licenses(files).join(`\n${'-'.repeat(80)}\n\n`));
  writeFileSync(join(OUT, 'bundle.inputs.json'), JSON.stringify(files.map((file) => relative(OUT, file)).sort()));
}
