/**
 * Learns what the ffmpeg at hand can do. Every question has a time limit and bounded memory, and a question without an answer leaves an empty list:
 * a program that hangs or floods never blocks the start.
 *
 * A hardware encoder that is only compiled in helps nobody, so each is tried with one frame; only those that worked are listed.
 */
import { existsSync } from 'node:fs';
import { hardwareEncoders, parseEncoders, parseFilters } from '../core/feature-lists.js';
import type { Sandbox } from '../sandbox/sandbox.js';
import { probeOutput } from './programs.js';

/** What is advertised besides the version. */
export interface Capabilities {
  encoders: string[];
  filters: string[];
  hardwareEncoders: string[];
}

const TRIAL_TIMEOUT_MS = 4_000;
/** All hardware trials together. */
const TRIALS_BUDGET_MS = 12_000;

/** What is asked, and how: inside the sandbox the ops will run in, so that nothing is advertised that would not work there. */
export interface CapabilityQuestion {
  ffmpeg: string;
  sandbox: Sandbox;
  environment: Readonly<Record<string, string>>;
  /** An empty folder that stands for a session. */
  folder: string;
  nextMarker(): string;
  /** Time limit of each question in ms; default PROBE_TIMEOUT_MS. */
  timeoutMs?: number;
}

/** Never rejects. */
export async function probeCapabilities(question: CapabilityQuestion): Promise<Capabilities> {
  const ask = async (...argv: string[]): Promise<string> => (await answer(question, argv, question.timeoutMs)) ?? '';
  const [encoderTable, filterTable] = await Promise.all([ask('-encoders'), ask('-filters')]);
  const encoders = parseEncoders(encoderTable);
  const candidates = hardwareEncoders(encoders).filter(
    (name) => /^(h264|hevc|av1|vp9)_/.test(name) && mayHaveDevice(name),
  );
  return {
    encoders,
    filters: parseFilters(filterTable),
    hardwareEncoders: await tryEncoders(question, candidates),
  };
}

/** Without its device node an encoder cannot work, and the trial is spared. Systems without such nodes are always tried. */
function mayHaveDevice(encoder: string): boolean {
  if (process.platform !== 'linux') return true;
  if (encoder.endsWith('_nvenc')) return existsSync('/dev/nvidiactl');
  if (encoder.endsWith('_v4l2m2m')) return existsSync('/dev/video10') || existsSync('/dev/video11');
  return existsSync('/dev/dri');
}

async function tryEncoders(question: CapabilityQuestion, names: readonly string[]): Promise<string[]> {
  const working: string[] = [];
  const until = performance.now() + TRIALS_BUDGET_MS;
  for (const name of names) {
    if (performance.now() > until) break;
    const trial = `-v error -f lavfi -i color=size=256x256:rate=1 -frames:v 1 -c:v ${name} -f null -`;
    const output = await answer(question, trial.split(' '), TRIAL_TIMEOUT_MS);
    if (output !== undefined) working.push(name);
  }
  return working;
}

/** Standard output, or undefined when the program hung, flooded, failed or could not be started. */
async function answer(question: CapabilityQuestion, argv: string[], timeoutMs?: number): Promise<string | undefined> {
  const command = question.sandbox.wrap({
    program: question.ffmpeg,
    argv: ['-hide_banner', '-nostdin', ...argv],
    sessionDir: question.folder,
    environment: question.environment,
  });
  const more = { marker: question.nextMarker(), environment: command.environment, cwd: question.folder };
  return probeOutput(command.program, command.argv, timeoutMs === undefined ? more : { ...more, timeoutMs }).catch(
    () => undefined,
  );
}
