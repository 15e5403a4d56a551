/**
 * A vitest reporter that ends every run with one plain line, `N passed, N failed`, for people and build servers that read text. Where
 * REELHOST_TEST_COUNTS names a folder it also leaves the three numbers there, so that .ci/run can add up several suites.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';

export default class ClosingLine implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    let passed = 0;
    let failed = 0;
    let skipped = 0;
    for (const module of modules) {
      let failedHere = 0;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') passed += 1;
        else if (state === 'failed') failedHere += 1;
        else skipped += 1;
      }
      // A file that did not even load, or whose after-hook found something left behind, is a failure too.
      if (failedHere === 0 && module.state() === 'failed') failedHere = 1;
      failed += failedHere;
    }
    const folder = process.env['REELHOST_TEST_COUNTS'];
    if (folder !== undefined && folder !== '') {
      writeFileSync(join(folder, `${process.pid}-${Date.now()}`), `${passed} ${failed} ${skipped}\n`);
    }
    process.stdout.write(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`);
  }
}
