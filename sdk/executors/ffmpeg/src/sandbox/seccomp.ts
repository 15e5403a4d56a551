/**
 * The kernel's system call filter (seccomp) that `setpriv --seccomp-filter` loads: it takes from a child what Landlock leaves open, which is the network
 * (sockets of every family, also those io_uring would make), other processes of the same user, and the modes and owners of files.
 *
 * A filter is classic BPF, eight bytes an instruction, made here so that no binary has to be shipped. It looks at the architecture and at the number of
 * the call only. What is refused answers EACCES; a call of a foreign architecture, whose numbers mean other things, ends the process.
 */

const LOAD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_AT_LEAST = 0x35;
const RETURN = 0x06;

/** Places in the kernel's `struct seccomp_data`. */
const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;

const ALLOW = 0x7fff_0000;
const KILL_PROCESS = 0x8000_0000;
const EACCES = 13;
const REFUSE = 0x0005_0000 | EACCES;

/** x86-64 has a second set of numbers (x32) from here on; no program we run uses it. */
const X32_FROM = 0x4000_0000;

/** What a filter refuses: calls by name. */
export type RefusedCall =
  | 'socket'
  | 'io_uring_setup'
  | 'ptrace'
  | 'process_vm_readv'
  | 'process_vm_writev'
  | 'pidfd_open'
  | 'pidfd_getfd'
  | 'pidfd_send_signal'
  | 'kill'
  | 'tkill'
  | 'tgkill'
  | 'rt_sigqueueinfo'
  | 'rt_tgsigqueueinfo'
  | 'chmod'
  | 'fchmod'
  | 'fchmodat'
  | 'fchmodat2'
  | 'chown'
  | 'lchown'
  | 'fchown'
  | 'fchownat';

interface Architecture {
  /** The kernel's AUDIT_ARCH_* value. */
  audit: number;
  numbers: Partial<Record<RefusedCall, number>>;
}

/** The table most newer architectures share. */
const GENERIC: Architecture['numbers'] = {
  fchmod: 52,
  fchmodat: 53,
  fchownat: 54,
  fchown: 55,
  ptrace: 117,
  kill: 129,
  tkill: 130,
  tgkill: 131,
  rt_sigqueueinfo: 138,
  socket: 198,
  rt_tgsigqueueinfo: 240,
  process_vm_readv: 270,
  process_vm_writev: 271,
  pidfd_send_signal: 424,
  io_uring_setup: 425,
  pidfd_open: 434,
  pidfd_getfd: 438,
  fchmodat2: 452,
};

/** By Node's name of the architecture. Others get no filter: their numbers, or a call that multiplexes sockets, would have to be known first. */
const ARCHITECTURES: Readonly<Record<string, Architecture>> = {
  x64: {
    audit: 0xc000_003e,
    numbers: {
      socket: 41,
      kill: 62,
      chmod: 90,
      fchmod: 91,
      chown: 92,
      fchown: 93,
      lchown: 94,
      ptrace: 101,
      rt_sigqueueinfo: 129,
      tkill: 200,
      tgkill: 234,
      fchownat: 260,
      fchmodat: 268,
      rt_tgsigqueueinfo: 297,
      process_vm_readv: 310,
      process_vm_writev: 311,
      pidfd_send_signal: 424,
      io_uring_setup: 425,
      pidfd_open: 434,
      pidfd_getfd: 438,
      fchmodat2: 452,
    },
  },
  arm64: { audit: 0xc000_00b7, numbers: GENERIC },
  riscv64: { audit: 0xc000_00f3, numbers: GENERIC },
  loong64: { audit: 0xc000_0102, numbers: GENERIC },
};

/**
 * The bytes of the filter for `architecture` (Node's `process.arch`), little-endian as all of these are.
 * Undefined where the calls of the architecture are not known here.
 */
export function socketFilter(architecture: string): Uint8Array | undefined {
  const known = ARCHITECTURES[architecture];
  if (known === undefined) return undefined;
  const program: Instruction[] = [
    [LOAD, 0, 0, ARCHITECTURE_AT],
    [JUMP_IF_EQUAL, 1, 0, known.audit],
    [RETURN, 0, 0, KILL_PROCESS],
    [LOAD, 0, 0, NUMBER_AT],
  ];
  if (architecture === 'x64') program.push([JUMP_IF_AT_LEAST, 0, 1, X32_FROM], [RETURN, 0, 0, REFUSE]);
  for (const number of Object.values(known.numbers)) {
    program.push([JUMP_IF_EQUAL, 0, 1, number], [RETURN, 0, 0, REFUSE]);
  }
  program.push([RETURN, 0, 0, ALLOW]);
  return encoded(program);
}

/** Operation, how many to skip when true, when false, operand: the kernel's `struct sock_filter`. */
type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, operand: number];

function encoded(program: readonly Instruction[]): Uint8Array {
  const bytes = new DataView(new ArrayBuffer(program.length * 8));
  for (const [index, [code, ifTrue, ifFalse, operand]] of program.entries()) {
    bytes.setUint16(index * 8, code, true);
    bytes.setUint8(index * 8 + 2, ifTrue);
    bytes.setUint8(index * 8 + 3, ifFalse);
    bytes.setUint32(index * 8 + 4, operand >>> 0, true);
  }
  return new Uint8Array(bytes.buffer);
}
