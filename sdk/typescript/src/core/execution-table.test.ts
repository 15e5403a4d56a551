/** The executor's bookkeeping, under any order of events. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ExecutionEffect, ExecutionTable, type Report } from './execution-table.js';

const DONE: Report = { type: 'succeeded', result: '1' };

const ids = fc.nat(5);
const steps = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constantFrom('order' as const, 'finish' as const, 'accept' as const, 'cancel' as const),
      id: ids,
    }),
    fc.record({ kind: fc.constant('resume' as const), wanted: fc.array(ids) }),
  ),
  { maxLength: 40 },
);

function order(id: number): { executionId: string; reservationId: string; jobId: string; task: string } {
  return { executionId: `e${id}`, reservationId: `r${id}`, jobId: `j${id}`, task: 't' };
}

describe('the execution table', () => {
  it('runs nothing twice, never exceeds its capacity, and reports only what has ended', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 3 }), (script, capacity) => {
        const table = new ExecutionTable(capacity);
        const running = new Set<string>();
        const runs = new Map<string, number>();
        const known = new Set<string>();
        const see = (effects: readonly ExecutionEffect[]): void => {
          for (const effect of effects) {
            switch (effect.type) {
              case 'run':
                runs.set(effect.executionId, (runs.get(effect.executionId) ?? 0) + 1);
                running.add(effect.executionId);
                break;
              case 'sendStarted':
                break;
              case 'sendReport':
                expect(running.has(effect.execution.executionId)).toBe(false);
                break;
              case 'abort':
                expect(running.has(effect.executionId)).toBe(true);
                break;
              case 'forget':
                known.delete(effect.executionId);
                break;
            }
          }
        };
        for (const step of script) {
          switch (step.kind) {
            case 'order': {
              // A broker never issues an execution id again, except when it repeats an order.
              const { executionId } = order(step.id);
              if (runs.has(executionId) && !known.has(executionId)) break;
              known.add(executionId);
              see(table.ordered(order(step.id)));
              break;
            }
            case 'finish':
              if (running.delete(`e${step.id}`)) see(table.finished(`e${step.id}`, DONE));
              break;
            case 'accept':
              see(table.settled(`e${step.id}`));
              break;
            case 'cancel':
              see(table.cancelled(`e${step.id}`, 'cancelled'));
              break;
            case 'resume':
              see(table.resume(1_024).effects);
              see(table.resumed(new Set(step.wanted.map((id) => `e${id}`))));
              break;
          }
          expect(table.running).toBe(running.size);
          expect(table.running).toBeLessThanOrEqual(capacity);
          for (const count of runs.values()) expect(count).toBe(1);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it('keeps a report over any number of connections until it is accepted', () => {
    const table = new ExecutionTable(1);
    table.ordered(order(1));
    table.finished('e1', DONE);
    for (let connection = 0; connection < 3; connection += 1) {
      expect(table.resume(10).entries).toEqual([
        { execution_id: 'e1', reservation_id: 'r1', job_id: 'j1', state: 'finished' },
      ]);
      expect(table.resumed(new Set(['e1']))).toEqual([{ type: 'sendReport', execution: order(1), report: DONE }]);
    }
    expect(table.settled('e1')).toEqual([{ type: 'forget', executionId: 'e1' }]);
    expect(table.resume(10).entries).toEqual([]);
  });

  it('reports a cancelled order that never began as failed, without running it', () => {
    const table = new ExecutionTable(1);
    table.ordered(order(1));
    expect(table.ordered(order(2))).toEqual([]);
    const [effect] = table.cancelled('e2', 'timeout');
    expect(effect).toMatchObject({
      type: 'sendReport',
      report: { type: 'failed', error: expect.stringContaining('"timeout"') },
    });
  });

  it('gives up what does not fit into hello', () => {
    const table = new ExecutionTable(5);
    for (let id = 0; id < 5; id += 1) table.ordered(order(id));
    const { entries, effects } = table.resume(3);
    expect(entries.length).toBe(3);
    expect(effects.map((effect) => effect.type)).toEqual(['abort', 'abort']);
  });
});
