/** Private folders: what is made, what is left, and that a place that takes none is named at once. */
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makePrivateFolder, takeStateFolder } from './private-folder.js';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'rh-folder-')));
afterAll(() => rmSync(root, { recursive: true }));

test('makes all that is missing for the owner only, and leaves what is there', () => {
  const above = join(root, 'above');
  mkdirSync(above);
  chmodSync(above, 0o755);
  makePrivateFolder(join(above, 'a', 'b'));
  makePrivateFolder(join(above, 'a', 'b'));
  makePrivateFolder('/');
  symlinkSync(above, join(root, 'link'));
  makePrivateFolder(join(root, 'link'));
  const modes = ['', 'a', 'a/b'].map((name) => statSync(join(above, name)).mode & 0o777);
  expect(modes).toEqual([0o755, 0o700, 0o700]);
});

test('what is in the way is an error that names it', () => {
  writeFileSync(join(root, 'file'), '');
  symlinkSync(join(root, 'nowhere'), join(root, 'dangling'));
  expect(() => makePrivateFolder(join(root, 'file'))).toThrow(/EEXIST.*file/);
  expect(() => makePrivateFolder(join(root, 'file', 'a'))).toThrow(/ENOTDIR.*file/);
  expect(() => makePrivateFolder(join(root, 'dangling'))).toThrow(/EEXIST.*dangling/);
});

test.runIf(process.platform === 'linux')('a file system that takes no folders is named at once', () => {
  const said = "ENOENT: no folder can be made in /proc, mkdir '/proc/x'";
  expect(() => makePrivateFolder('/proc/x')).toThrow(said);
  expect(() => makePrivateFolder('/proc/x/y/z')).toThrow(said);
});

test('a state directory is closed to others when it is ours or nobody’s, and never when it is theirs', () => {
  const folder = (name: string, mode: number, ...files: string[]): string => {
    const path = join(root, name);
    mkdirSync(path);
    for (const file of files) writeFileSync(join(path, file), '');
    chmodSync(path, mode);
    return path;
  };
  const modeOf = (path: string): number => statSync(path).mode & 0o7777;
  for (const path of [
    folder('empty', 0o755),
    folder('volume', 0o755, 'lost+found'),
    folder('ours', 0o755, 'broker.sqlite', 'notes'),
    folder('bridges', 0o750, 'bridge.status.json'),
    folder('private', 0o700, 'notes'),
    join(root, 'new', 'below'),
  ]) {
    expect(takeStateFolder(path)).toBe(path);
    expect(modeOf(path)).toBe(0o700);
  }
  const read = folder('read', 0o755, 'notes');
  expect(takeStateFolder(read)).toBe(read);
  expect(modeOf(read)).toBe(0o755);
  for (const [path, mode] of [
    [folder('groups', 0o770, 'notes'), 0o770],
    [folder('everybodys', 0o777), 0o777],
    [folder('sticky', 0o1755), 0o1755],
  ] as const) {
    expect(() => takeStateFolder(path)).toThrow(`${path} is shared with others; name a folder of its own`);
    expect(modeOf(path)).toBe(mode);
  }
  expect(() => takeStateFolder('')).toThrow('--state-dir must not be empty');
});
