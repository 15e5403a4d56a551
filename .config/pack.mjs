/**
 * Makes the tarballs that are published: `npm run pack -- FOLDER` puts one of each public package there and prints what npm says of them as JSON. Publish those
 * (`npm publish FILE`), not the folders they come from: the license is added here, and what should not be published is found here.
 *
 * What the compiler once made of a source that is gone lies in `dist/` for ever, and is left out. Refused: a public package that needs a private one, or was not built.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const manifestOf = (folder) => JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'));
const packages = manifestOf('.').workspaces.map((folder) => ({ folder, manifest: manifestOf(folder) }));
const isPublic = ({ manifest }) => manifest.private !== true;

/** What is wrong with a package, in words. */
function faultsOf({ folder, manifest }) {
  const others = packages.filter((other) => !isPublic(other)).map((other) => other.manifest.name);
  const faults = Object.keys(manifest.dependencies ?? {})
    .filter((name) => others.includes(name))
    .map((name) => `needs ${name}, which is private`);
  return existsSync(join(ROOT, folder, 'dist')) ? faults : [...faults, 'was not built: npm run build'];
}

/** Whether a file of a package's `dist/` is of today: modules have a source, everything else is made by the build as a whole. */
function isOfToday(folder, file) {
  const [, module] = /^dist\/(.+?)(?:\.d)?\.(?:js|ts)(?:\.map)?$/.exec(file) ?? [];
  return module === undefined || existsSync(join(ROOT, folder, 'src', `${module}.ts`));
}

const destination = process.argv[2];
if (destination === undefined) throw new Error('say where to: npm run pack -- FOLDER');
const faults = packages.filter(isPublic).flatMap((each) => faultsOf(each).map((fault) => `${each.folder} ${fault}`));
if (faults.length > 0) {
  process.stderr.write(`${faults.join('\n')}\n`);
  process.exit(1);
}
const stage = mkdtempSync(join(tmpdir(), 'reelhost-pack-'));
try {
  const folders = packages.filter(isPublic).map(({ folder, manifest }) => {
    const copy = join(stage, basename(manifest.name));
    mkdirSync(copy);
    for (const entry of manifest.files.filter((name) => !name.startsWith('!')))
      cpSync(join(ROOT, folder, entry), join(copy, entry), {
        recursive: true,
        filter: (path) => isOfToday(folder, relative(join(ROOT, folder), path).split(sep).join('/')),
      });
    cpSync(join(ROOT, 'LICENSE'), join(copy, 'LICENSE'));
    writeFileSync(join(copy, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
    return copy;
  });
  mkdirSync(resolve(destination), { recursive: true });
  const packed = execFileSync(
    'npm',
    ['pack', '--json', '--ignore-scripts', '--pack-destination', resolve(destination), ...folders],
    { cwd: stage, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
  );
  process.stdout.write(packed);
} finally {
  rmSync(stage, { recursive: true, force: true });
}
