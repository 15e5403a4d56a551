/** Private folders: what is made, what is left, and that a place that takes none is named at once. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makePrivateFolder } from './private-folder.js';

const root = mkdtempSync(join(tmpdir(), 'rh-folder-'));
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
