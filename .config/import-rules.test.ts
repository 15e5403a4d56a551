import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { checkImports, PACKAGE_RULES, sourceFiles, type Violation } from './import-rules.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const lines = (violations: readonly Violation[]): string[] => violations.map((v) => `${v.file}:${v.line} ${v.says}`);

describe('the imports of this repository', () => {
  const result = checkImports(root);

  it('point the way the design says, and are declared where they are used', () => {
    expect(lines(result.violations)).toEqual([]);
  });

  it('use every dependency that a package declares', () => {
    expect(result.unused).toEqual([]);
  });

  it('cover the core of every daemon', () => {
    expect(result.cores).toEqual(expect.arrayContaining(['bridge/src/core', 'broker/src/core']));
    expect(sourceFiles(root).length).toBeGreaterThan(20);
  });
});

describe('the reader of imports', () => {
  const sandbox = mkdtempSync(join(tmpdir(), 'import-rules-'));
  afterAll(() => rmSync(sandbox, { recursive: true }));
  const names: Record<string, string> = {
    'sdk/protocol': '@reelhost/protocol',
    'sdk/log': '@reelhost/log',
    'bridge/protocol': '@reelhost/bridge-protocol',
    'sdk/typescript': '@reelhost/sdk',
    'sdk/executors/ffmpeg': '@reelhost/executor-ffmpeg',
    bridge: '@reelhost/bridge',
    broker: '@reelhost/broker',
    'broker/cli': 'reelhost',
    fixtures: '@reelhost/fixtures',
  };
  let repositories = 0;

  /** Builds a repository of one file and answers what the rules say about it. */
  function complaintsAbout(path: string, text: string, dependencies: string[] = []): string[] {
    const repository = join(sandbox, String(repositories++));
    const put = (file: string, content: string): void => {
      mkdirSync(dirname(join(repository, file)), { recursive: true });
      writeFileSync(join(repository, file), content);
    };
    put('package.json', JSON.stringify({ name: 'root', devDependencies: { vitest: '1' } }));
    for (const { dir } of PACKAGE_RULES) {
      const own = path.startsWith(`${dir}/`) ? Object.fromEntries(dependencies.map((name) => [name, '1'])) : {};
      put(join(dir, 'package.json'), JSON.stringify({ name: names[dir], dependencies: own }));
    }
    put(path, text);
    return checkImports(repository).violations.map((violation) => violation.says);
  }

  it.each([
    [
      'a product file that imports fixtures',
      'broker/src/a.ts',
      `import '@reelhost/fixtures/x';`,
      'nothing imports fixtures',
    ],
    ['a relative path into another package', 'broker/src/a.ts', `import '../../fixtures/x.js';`, 'leaves the package'],
    ['the bridge protocol in the broker', 'broker/src/a.ts', `import '@reelhost/bridge-protocol';`, 'must not import'],
    [
      'a static import of a daemon by the command',
      'broker/cli/src/a.ts',
      `import '@reelhost/broker/main';`,
      'must not import',
    ],
    ['an undeclared package', 'bridge/src/a.ts', `import ws from 'ws';`, 'is not in bridge/package.json'],
    ['an undeclared type import', 'bridge/src/a.ts', `type A = import('ws').Server;`, 'is not in bridge/package.json'],
    ['a builtin without its prefix', 'bridge/src/a.ts', `import 'fs';`, 'write node:fs'],
    ['a builtin in a core', 'bridge/src/core/a.ts', `import 'node:fs';`, 'a core must not import node:fs'],
    ['an adapter in a core', 'bridge/src/core/a.ts', `import '../b.js';`, 'a core must not import ../b.js'],
    ['the clock in a core', 'bridge/src/core/a.ts', 'export const a = Date.now();', 'must not use Date.now'],
    ['a new date in a core', 'bridge/src/core/a.ts', 'export const a = new Date();', 'must not use new Date()'],
    ['chance in a core', 'bridge/src/core/a.ts', 'export const a = Math.random();', 'must not use Math.random'],
    ['a timer in a core', 'bridge/src/core/a.ts', 'setTimeout(() => 1, 1);', 'must not use setTimeout'],
    ['the environment in a core', 'bridge/src/core/a.ts', 'export const a = process.env;', 'must not use process'],
    ['a file outside every package', 'scripts/a.ts', 'export {};', 'belongs to no package'],
  ])('sees %s', (_name, path, text, complaint) => {
    expect(complaintsAbout(path, text).join('\n')).toContain(complaint);
  });

  it('accepts what the table allows', () => {
    expect(complaintsAbout('broker/src/a.ts', `import '@reelhost/protocol';`, ['@reelhost/protocol'])).toEqual([]);
    expect(complaintsAbout('broker/cli/src/a.ts', `await import('@reelhost/broker/main');`)).toEqual([]);
    expect(complaintsAbout('bridge/src/a.test.ts', `import 'vitest';`)).toEqual([]);
    expect(complaintsAbout('bridge/src/core/a.ts', 'export const at = new Date(0); // setTimeout(')).toEqual([]);
  });
});
