/**
 * Who may import whom, as data and as a reader of sources. It decides nothing about style: only which way the dependencies of this
 * repository may point, so that each part can be read, tested and replaced alone. The rules are explained in docs/architecture.md.
 * The sources are read with the TypeScript parser, so a comment or a string is never taken for an import.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative, resolve, sep } from 'node:path';
import ts from 'typescript';

/** What one workspace package may import, besides what its package.json declares from the registry. */
export interface PackageRule {
  readonly dir: string;
  /** Packages of this repository it may import. */
  readonly ours: readonly string[];
  /** Packages of this repository whose process it starts: only a dynamic import of `<package>/main` or a resolved path. */
  readonly starts?: readonly string[];
  /** Dependencies that carry programs and are found by their path, not imported. */
  readonly carriers?: readonly string[];
  /** Set where nothing else may come from the registry either. */
  readonly onlyExternal?: readonly string[];
}

const EXECUTORS = ['@reelhost/executor-ffmpeg'];

/** The table of the design. A folder that is not listed here is a mistake, and the test says so. */
export const PACKAGE_RULES: readonly PackageRule[] = [
  { dir: 'sdk/protocol', ours: [], onlyExternal: ['zod'] },
  { dir: 'bridge/protocol', ours: [], onlyExternal: ['zod'] },
  { dir: 'sdk/log', ours: ['@reelhost/protocol'], onlyExternal: ['pino'] },
  { dir: 'sdk/typescript', ours: ['@reelhost/protocol'] },
  { dir: 'sdk/executors/ffmpeg', ours: ['@reelhost/log', '@reelhost/sdk'] },
  { dir: 'bridge', ours: ['@reelhost/bridge-protocol', '@reelhost/log', '@reelhost/protocol', '@reelhost/sdk'] },
  { dir: 'broker', ours: ['@reelhost/log', '@reelhost/protocol'] },
  {
    dir: 'broker/cli',
    ours: ['@reelhost/log', '@reelhost/sdk'],
    starts: ['@reelhost/broker', '@reelhost/bridge', ...EXECUTORS],
  },
  {
    dir: 'fixtures',
    ours: ['@reelhost/bridge-protocol', '@reelhost/protocol', '@reelhost/sdk'],
    starts: ['reelhost', '@reelhost/broker', '@reelhost/bridge', ...EXECUTORS],
    carriers: ['@ffmpeg-installer/ffmpeg', '@ffprobe-installer/ffprobe'],
  },
];

/** One module specifier found in a source file. */
export interface ImportSite {
  readonly specifier: string;
  readonly line: number;
  readonly dynamic: boolean;
}

/** A rule that a file breaks, ready to be read by a person. */
export interface Violation {
  readonly file: string;
  readonly line: number;
  readonly says: string;
}

interface Source {
  readonly path: string;
  readonly text: string;
  readonly tree: ts.SourceFile;
}

const SKIPPED_FOLDERS = new Set(['node_modules', 'dist', 'demo-out', '.venv', '.git']);
const BUILTINS = new Set(builtinModules);

/** Globals that bring time, chance, waiting or the outside world into a core. */
const IMPURE_GLOBALS = new Set([
  'setTimeout',
  'setInterval',
  'setImmediate',
  'queueMicrotask',
  'process',
  'performance',
  'crypto',
  'fetch',
  'console',
  'Buffer',
  'require',
]);
const IMPURE_MEMBERS = new Set(['Date.now', 'Math.random', 'globalThis']);

/** Every TypeScript source below `root`, with forward slashes and relative to it. */
export function sourceFiles(root: string): string[] {
  const found: string[] = [];
  const visit = (dir: string): void => {
    for (const entry of readdirSync(dir, { withFileTypes: true })) {
      if (SKIPPED_FOLDERS.has(entry.name)) continue;
      const path = join(dir, entry.name);
      if (entry.isDirectory()) visit(path);
      else if (/\.[cm]?tsx?$/.test(entry.name) && !entry.name.endsWith('.d.ts')) {
        found.push(relative(root, path).split(sep).join('/'));
      }
    }
  };
  visit(root);
  return found.sort();
}

function parse(root: string, path: string): Source {
  const text = readFileSync(join(root, path), 'utf8');
  return { path, text, tree: ts.createSourceFile(path, text, ts.ScriptTarget.ES2023, true) };
}

function lineOf(source: Source, node: ts.Node): number {
  return source.tree.getLineAndCharacterOfPosition(node.getStart(source.tree)).line + 1;
}

/** Static, dynamic, type-only and re-exporting imports, `require` and `import.meta.resolve` with a literal. */
export function importsOf(source: Source): ImportSite[] {
  const found: ImportSite[] = [];
  const add = (node: ts.Node | undefined, dynamic: boolean): void => {
    if (node !== undefined && ts.isStringLiteralLike(node)) {
      found.push({ specifier: node.text, line: lineOf(source, node), dynamic });
    }
  };
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) add(node.moduleSpecifier, false);
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal, false);
    else if (ts.isCallExpression(node)) {
      const callee = node.expression.getText(source.tree);
      if (node.expression.kind === ts.SyntaxKind.ImportKeyword) add(node.arguments[0], true);
      else if (/^(?:require|require\.resolve|import\.meta\.resolve)$/.test(callee)) add(node.arguments[0], true);
    }
    ts.forEachChild(node, visit);
  };
  visit(source.tree);
  return found;
}

function packageNameOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function isBuiltin(specifier: string): boolean {
  return specifier.startsWith('node:') || BUILTINS.has(packageNameOf(specifier));
}

interface Manifest {
  readonly name: string;
  readonly dependencies: ReadonlySet<string>;
  readonly forTests: ReadonlySet<string>;
}

function manifestOf(root: string, dir: string): Manifest {
  const json = JSON.parse(readFileSync(join(root, dir, 'package.json'), 'utf8')) as {
    name: string;
    dependencies?: Record<string, string>;
    optionalDependencies?: Record<string, string>;
    peerDependencies?: Record<string, string>;
    devDependencies?: Record<string, string>;
  };
  const dependencies = new Set([
    ...Object.keys(json.dependencies ?? {}),
    ...Object.keys(json.optionalDependencies ?? {}),
    ...Object.keys(json.peerDependencies ?? {}),
  ]);
  return { name: json.name, dependencies, forTests: new Set(Object.keys(json.devDependencies ?? {})) };
}

/** Whether a file belongs to a `core/` folder of a package's `src/`: those must be pure. Its tests may do as they like. */
export function isCore(path: string): boolean {
  return /(?:^|\/)src\/core\//.test(path) && !isTest(path);
}

function isTest(path: string): boolean {
  return /\.test\.[cm]?tsx?$|(?:^|\/)tests\//.test(path);
}

function ruleFor(path: string): PackageRule | undefined {
  return PACKAGE_RULES.filter((rule) => path.startsWith(`${rule.dir}/`)).sort((a, b) => b.dir.length - a.dir.length)[0];
}

/** Every violation in the repository at `root`; an empty list is what the test wants. */
export function checkImports(root: string): { violations: Violation[]; unused: string[]; cores: string[] } {
  const rootManifest = manifestOf(root, '.');
  const manifests = new Map(PACKAGE_RULES.map((rule) => [rule.dir, manifestOf(root, rule.dir)]));
  const ownNames = new Set([...manifests.values()].map((manifest) => manifest.name));
  const used = new Map(PACKAGE_RULES.map((rule) => [rule.dir, new Set<string>()]));
  const violations: Violation[] = [];
  const cores = new Set<string>();

  for (const path of sourceFiles(root)) {
    if (path.startsWith('.config/')) continue;
    const rule = ruleFor(path);
    if (rule === undefined) {
      violations.push({ file: path, line: 1, says: 'belongs to no package of the table in .config/import-rules.ts' });
      continue;
    }
    const manifest = manifests.get(rule.dir) as Manifest;
    const source = parse(root, path);
    const say = (line: number, says: string): void => void violations.push({ file: path, line, says });
    if (isCore(path)) {
      cores.add(path.slice(0, path.indexOf('/core/') + 5));
      for (const impure of impurities(source)) say(impure.line, impure.says);
    }
    for (const site of importsOf(source)) {
      if (site.specifier.startsWith('.')) checkRelative(root, path, rule, site, say);
      else if (isBuiltin(site.specifier)) {
        if (!site.specifier.startsWith('node:')) say(site.line, `write node:${site.specifier}`);
        if (isCore(path)) say(site.line, `a core must not import ${site.specifier}`);
      } else {
        const name = packageNameOf(site.specifier);
        used.get(rule.dir)?.add(name);
        checkBare(name, site, { path, rule, manifest, rootManifest, ownNames, say });
      }
    }
  }
  const unused = PACKAGE_RULES.flatMap((rule) => {
    const manifest = manifests.get(rule.dir) as Manifest;
    return [...manifest.dependencies]
      .filter((name) => used.get(rule.dir)?.has(name) !== true && rule.carriers?.includes(name) !== true)
      .map((name) => `${rule.dir}/package.json declares ${name}, and nothing there imports it`);
  });
  return { violations, unused, cores: [...cores].sort() };
}

function checkRelative(
  root: string,
  path: string,
  rule: PackageRule,
  site: ImportSite,
  say: (line: number, says: string) => void,
): void {
  const target = relative(root, resolve(root, dirname(path), site.specifier))
    .split(sep)
    .join('/');
  if (ruleFor(target)?.dir !== rule.dir) {
    const testOfFixtures = rule.dir === 'fixtures' && isTest(path) && target.startsWith('.config/');
    if (!testOfFixtures) say(site.line, `${site.specifier} leaves the package; import it by its name`);
  }
  if (isCore(path) && !/(?:^|\/)src\/core\//.test(target)) say(site.line, `a core must not import ${site.specifier}`);
  const source = target.replace(/\.([cm]?)js$/, '.$1ts');
  const isJson = target.endsWith('.json');
  if (
    !isJson &&
    ruleFor(target)?.dir === rule.dir &&
    !existsSync(join(root, source)) &&
    !existsSync(join(root, target))
  ) {
    say(site.line, `${site.specifier} does not exist`);
  }
}

function checkBare(
  name: string,
  site: ImportSite,
  at: {
    path: string;
    rule: PackageRule;
    manifest: Manifest;
    rootManifest: Manifest;
    ownNames: ReadonlySet<string>;
    say: (line: number, says: string) => void;
  },
): void {
  const { path, rule, manifest, rootManifest, ownNames, say } = at;
  if (ownNames.has(name)) {
    if (name === '@reelhost/fixtures') say(site.line, 'nothing imports fixtures');
    if (name === manifest.name) return;
    const started = rule.starts?.includes(name) === true && site.dynamic;
    if (!rule.ours.includes(name) && !started) say(site.line, `${rule.dir} must not import ${name}`);
    if (!manifest.dependencies.has(name) && !started) say(site.line, `${name} is not in ${rule.dir}/package.json`);
    return;
  }
  if (isTest(path) && (rootManifest.forTests.has(name) || manifest.forTests.has(name))) return;
  if (!manifest.dependencies.has(name)) say(site.line, `${name} is not in ${rule.dir}/package.json`);
  if (rule.onlyExternal !== undefined && !rule.onlyExternal.includes(name) && !isTest(path)) {
    say(site.line, `${rule.dir} may use ${rule.onlyExternal.join(', ')} only`);
  }
}

/** Uses of a clock, chance, a timer or the outside world in a core's source. */
function impurities(source: Source): { line: number; says: string }[] {
  const found: { line: number; says: string }[] = [];
  const say = (node: ts.Node, what: string): void =>
    void found.push({ line: lineOf(source, node), says: `a core must not use ${what}: it comes in as an argument` });
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAccessExpression(node)) {
      const text = node.getText(source.tree);
      if (IMPURE_MEMBERS.has(text) || text.startsWith('globalThis.')) say(node, text);
    } else if (ts.isNewExpression(node) && node.expression.getText(source.tree) === 'Date') {
      if ((node.arguments?.length ?? 0) === 0) say(node, 'new Date()');
    } else if (ts.isIdentifier(node) && IMPURE_GLOBALS.has(node.text) && isReference(node)) say(node, node.text);
    ts.forEachChild(node, visit);
  };
  visit(source.tree);
  return found;
}

/** An identifier that stands for a global: not a property, a key, a declared name or a part of a type. */
function isReference(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isCallExpression(parent) || ts.isNewExpression(parent)) return true;
  if (ts.isBinaryExpression(parent)) return true;
  return ts.isElementAccessExpression(parent) && parent.expression === node;
}
