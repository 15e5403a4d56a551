/**
 * The guardian: a small process that outlives a killed executor just long enough to end its children.
 *
 * It reads lines from standard input, `+<leader pid> <marker>` and `-<leader pid>`, and when the input ends (the executor stopped, crashed or was
 * killed with -9: the kernel closes the pipe) it kills every group still listed and everything that carries the executor's marker, then exits.
 * It runs in a session of its own, so a signal for the executor's terminal or group does not reach it. It opens nothing and writes nothing.
 */
import { type ProcessTree, sweepTree } from './process-tree.js';

const MAX_LINE = 4096;
const trees = new Map<number, ProcessTree>();
let rest = '';

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);

process.stdin.setEncoding('latin1');
process.stdin.on('data', (text: string) => {
  const lines = (rest + text).split('\n');
  rest = (lines.pop() ?? '').slice(0, MAX_LINE);
  for (const line of lines) {
    const match = /^([+-])(\d+)(?: (\S+))?$/.exec(line);
    const leader = Number(match?.[2]);
    if (!match || leader <= 1) continue;
    if (match[1] === '-') trees.delete(leader);
    else trees.set(leader, { leader, marker: match[3] ?? '' });
  }
});
process.stdin.on('error', () => undefined);
process.stdin.on('close', () => {
  // Nothing is killed for a marker that could match everybody's.
  const owner = /^\d+:\d+:[0-9a-f]{16}:$/.test(process.argv[2] ?? '') ? (process.argv[2] ?? '') : '';
  const all = [...trees.values()];
  // A child that was started in the moment of death was never announced: the owner's marker finds it.
  if (owner !== '') all.push({ marker: owner });
  Promise.all(all.map(sweepTree)).then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
