/** A complete executor. Run it, compiled or with a Node that reads TypeScript (22.18): `node executor.ts`; it finds the broker of this host by itself. */
import { createExecutor, TaskError } from '@reelhost/sdk';

const executor = createExecutor({
  tasks: {
    async 'demo.count.v1'({ to }, { signal, progress }) {
      if (typeof to !== 'number') throw new TaskError('invalid_args', '"to" must be a number');
      for (let n = 1; n <= to; n += 1) {
        signal.throwIfAborted();
        progress({ stage: 'counting', percent: (100 * n) / to });
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      return { counted: to };
    },
  },
});
process.once('SIGTERM', () => executor.stop());
await executor.start();
