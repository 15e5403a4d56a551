import { describe, expect, it } from 'vitest';
import { socketFilter } from './seccomp.js';

/** What the kernel would answer: the four operations the filter uses, by the rules of classic BPF. */
function verdict(filter: Uint8Array, data: { number: number; architecture: number }): number {
  const view = new DataView(filter.buffer);
  let accumulator = 0;
  for (let at = 0; at < filter.length / 8; at++) {
    const operand = view.getUint32(at * 8 + 4, true);
    switch (view.getUint16(at * 8, true)) {
      case 0x20:
        accumulator = operand === 0 ? data.number : data.architecture;
        break;
      case 0x15:
        at += view.getUint8(at * 8 + (accumulator === operand ? 2 : 3));
        break;
      case 0x35:
        at += view.getUint8(at * 8 + (accumulator >= operand ? 2 : 3));
        break;
      case 0x06:
        return operand;
    }
  }
  throw new Error('the filter ends without an answer');
}

const X64 = 0xc000_003e;
const ALLOW = 0x7fff_0000;
const REFUSE_EACCES = 0x0005_000d;
const KILL = 0x8000_0000;

/** Numbers from the kernel's tables for x86-64. */
const refused = [41, 62, 90, 91, 92, 93, 94, 101, 129, 200, 234, 260, 268, 297, 310, 311, 424, 425, 434, 438, 452];

describe('the system call filter', () => {
  const filter = socketFilter('x64') as Uint8Array;

  it('refuses exactly the calls that make sockets, reach other processes or change rights', () => {
    const found = Array.from({ length: 1_024 }, (_, number) => number).filter(
      (number) => verdict(filter, { number, architecture: X64 }) !== ALLOW,
    );
    expect(found).toEqual(refused);
    for (const number of refused) expect(verdict(filter, { number, architecture: X64 })).toBe(REFUSE_EACCES);
  });

  it('refuses the second set of numbers, and ends programs of another architecture', () => {
    for (const number of [0x4000_0000, 0x4000_0029, 0xffff_ffff])
      expect(verdict(filter, { number, architecture: X64 })).toBe(REFUSE_EACCES);
    expect(verdict(filter, { number: 359, architecture: 0x4000_0003 })).toBe(KILL);
  });

  it('knows the other 64-bit architectures by their shared table, and no more', () => {
    for (const [name, architecture] of [
      ['arm64', 0xc000_00b7],
      ['riscv64', 0xc000_00f3],
      ['loong64', 0xc000_0102],
    ] as const) {
      const other = socketFilter(name) as Uint8Array;
      expect(verdict(other, { number: 198, architecture })).toBe(REFUSE_EACCES);
      expect(verdict(other, { number: 425, architecture })).toBe(REFUSE_EACCES);
      expect(verdict(other, { number: 64, architecture })).toBe(ALLOW);
      expect(verdict(other, { number: 198, architecture: X64 })).toBe(KILL);
    }
    for (const name of ['arm', 'ia32', 'ppc64', 's390x', 'mips']) expect(socketFilter(name)).toBeUndefined();
  });
});
