import { defineConfig } from 'vitest/config';

/** The suite of `npm run test:long`: crash matrices, fuzzing and soak runs. */
export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['**/*.long.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**'],
    reporters: ['default', new URL('./closing-line.ts', import.meta.url).pathname],
    // A build server has neighbours that stand still at bad moments: there a failed test gets one more try, and the report says so.
    retry: process.env['CI'] ? 1 : 0,
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 600_000,
    hookTimeout: 60_000,
    globalSetup: [new URL('./media-setup.ts', import.meta.url).pathname],
    setupFiles: [new URL('./no-leaks.ts', import.meta.url).pathname],
  },
});
