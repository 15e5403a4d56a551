import { defineConfig } from 'vitest/config';

/** The suite of `npm run test:long`: crash matrices, fuzzing and soak runs. */
export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['**/*.long.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 600_000,
    hookTimeout: 60_000,
    setupFiles: [new URL('./no-leaks.ts', import.meta.url).pathname],
  },
});
