/** Chooses the sandbox at start. */
import { noSandbox, type Sandbox } from './sandbox.js';

/** A sandbox was required and none passed its self-test; the message says what was tried and why it failed. */
export class SandboxMissing extends Error {
  override readonly name = 'SandboxMissing';
}

/** @throws SandboxMissing when `required` cannot be met. */
export async function selectSandbox(mode: 'auto' | 'required' | 'off', _parts: unknown): Promise<Sandbox> {
  if (mode === 'required') throw new SandboxMissing('no sandbox is available');
  return noSandbox;
}
