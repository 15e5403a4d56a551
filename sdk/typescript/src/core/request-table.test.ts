/** The requests of a client: what is sent when, what is held, what becomes of them when the connection is cut. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type RequestEffect, RequestTable } from './request-table.js';

const AGAIN = { repeatable: true };
const ONCE = { repeatable: false };
const PATIENT = { repeatable: true, patient: true };

function said(effects: readonly RequestEffect[]): string[] {
  return effects.map((effect) => `${effect.type} ${effect.requestId}`);
}

test('a request waits for a connection, then for its place; the first come are the first sent', () => {
  const table = new RequestTable();
  for (const id of ['a', 'b', 'c']) expect(said(table.add(id, id, AGAIN))).toEqual([]);
  expect(said(table.linkUp({ all: 2, patient: 2 }))).toEqual(['send a', 'send b', 'hold c']);
  expect(said(table.add('d', 'd', AGAIN))).toEqual([]);
  expect(said(table.close('b'))).toEqual(['send c', 'hold d']);
  expect(said(table.close('d'))).toEqual([]);
});

test('patient requests wait for each other and for nobody else; nobody else waits for them', () => {
  const table = new RequestTable();
  table.linkUp({ all: Number.POSITIVE_INFINITY, patient: 2 });
  expect(said(table.add('p1', '', PATIENT))).toEqual(['send p1']);
  expect(said(table.add('p2', '', PATIENT))).toEqual(['send p2']);
  expect(said(table.add('p3', '', PATIENT))).toEqual(['hold p3']);
  expect(said(table.add('p4', '', PATIENT))).toEqual([]);
  for (let n = 0; n < 100; n++) expect(said(table.add(`h${n}`, '', AGAIN))).toEqual([`send h${n}`]);
  expect(said(table.close('h5'))).toEqual([]);
  expect(said(table.close('p1'))).toEqual(['send p3', 'hold p4']);
});

test('after a cut what may be said twice is said again in its order, what may not has an unknown outcome, what was held goes with the rest', () => {
  const table = new RequestTable();
  table.linkUp({ all: Number.POSITIVE_INFINITY, patient: 1 });
  table.add('once', '', ONCE);
  table.add('p1', '', PATIENT);
  table.add('again', '', AGAIN);
  table.add('p2', '', PATIENT);
  expect(said(table.linkDown())).toEqual(['unknownOutcome once']);
  expect(said(table.linkUp({ all: 9, patient: 2 }))).toEqual(['send again', 'send p1', 'send p2']);
});

test('whatever happens, no more than the window are at the broker, nothing is forgotten and nothing is sent twice on one connection', () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('add' as const), patient: fc.boolean(), repeatable: fc.boolean() }),
    fc.record({ do: fc.constant('close' as const), pick: fc.nat(40) }),
    fc.record({ do: fc.constant('cut' as const) }),
    fc.record({
      do: fc.constant('up' as const),
      all: fc.integer({ min: 1, max: 5 }),
      patient: fc.integer({ min: 1, max: 3 }),
    }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const table = new RequestTable();
      const open = new Map<string, { readonly patient: boolean; readonly repeatable: boolean }>();
      const atBroker = new Set<string>();
      let window = { all: 0, patient: 0 };
      let last = 0;
      const apply = (effects: readonly RequestEffect[]): void => {
        for (const effect of effects) {
          if (effect.type === 'hold') continue;
          if (effect.type === 'unknownOutcome') {
            expect(open.get(effect.requestId)?.repeatable).toBe(false);
            open.delete(effect.requestId);
            continue;
          }
          expect(atBroker.has(effect.requestId)).toBe(false);
          atBroker.add(effect.requestId);
        }
      };
      for (const each of steps) {
        if (each.do === 'add') {
          const id = `r${++last}`;
          open.set(id, each);
          apply(table.add(id, id, each));
        } else if (each.do === 'close') {
          const id = [...open.keys()][each.pick % Math.max(1, open.size)];
          if (id === undefined) continue;
          open.delete(id);
          atBroker.delete(id);
          apply(table.close(id));
        } else if (each.do === 'cut') {
          atBroker.clear();
          window = { all: 0, patient: 0 };
          apply(table.linkDown());
        } else {
          if (window.all > 0) apply(table.linkDown());
          atBroker.clear();
          window = { all: each.all, patient: each.patient };
          apply(table.linkUp(window));
        }
        const patient = [...atBroker].filter((id) => open.get(id)?.patient === true).length;
        expect(atBroker.size).toBeLessThanOrEqual(window.all);
        expect(patient).toBeLessThanOrEqual(window.patient);
        const hasty = [...open].filter(([, kind]) => !kind.patient).length;
        if (atBroker.size < window.all && patient >= Math.min(window.patient, open.size - hasty)) {
          expect(atBroker.size - patient).toBe(hasty);
        }
      }
    }),
    { numRuns: 300 },
  );
});
