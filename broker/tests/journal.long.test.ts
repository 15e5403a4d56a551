/** Damage at 400 random places of a journal. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { damageManyTimes } from './journal-damage.js';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'rhj-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

test('wherever a journal is cut or spoilt, it opens or is set aside, and never more than one start is lost', () => {
  expect(damageManyTimes(directory, 400)).toBeGreaterThan(50);
});
