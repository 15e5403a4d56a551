/**
 * Learns what the ffmpeg at hand can do. Every question has a time limit and bounded memory, and a question without an answer leaves an empty list:
 * a program that hangs or floods never blocks the start.
 *
 * A hardware encoder that is only compiled in helps nobody, so each is tried with one frame; only those that worked are listed.
 */
import { hardwareEncoders, parseEncoders, parseFilters } from '../core/feature-lists.js';
import { type Programs, probeOutput } from './programs.js';

/** What is advertised besides the version. */
export interface Capabilities {
  encoders: string[];
  filters: string[];
  hardwareEncoders: string[];
}

const TRIAL_TIMEOUT_MS = 4_000;
/** All hardware trials together. */
const TRIALS_BUDGET_MS = 12_000;

/** Never rejects. */
export async function probeCapabilities(programs: Programs, nextMarker: () => string): Promise<Capabilities> {
  const ask = (...argv: string[]): Promise<string> =>
    probeOutput(programs.ffmpeg, ['-hide_banner', '-nostdin', ...argv], { marker: nextMarker() }).then(
      (output) => output ?? '',
      () => '',
    );
  const [encoderTable, filterTable] = await Promise.all([ask('-encoders'), ask('-filters')]);
  const encoders = parseEncoders(encoderTable);
  const candidates = hardwareEncoders(encoders).filter((name) => /^(h264|hevc|av1|vp9)_/.test(name));
  return {
    encoders,
    filters: parseFilters(filterTable),
    hardwareEncoders: await tryEncoders(programs, candidates, nextMarker),
  };
}

async function tryEncoders(programs: Programs, names: readonly string[], nextMarker: () => string): Promise<string[]> {
  const working: string[] = [];
  const until = performance.now() + TRIALS_BUDGET_MS;
  for (const name of names) {
    if (performance.now() > until) break;
    const argv = [
      '-hide_banner',
      '-nostdin',
      '-v',
      'error',
      '-f',
      'lavfi',
      '-i',
      'color=size=256x256:rate=1',
      '-frames:v',
      '1',
      '-c:v',
      name,
      '-f',
      'null',
      '-',
    ];
    const output = await probeOutput(programs.ffmpeg, argv, {
      marker: nextMarker(),
      timeoutMs: TRIAL_TIMEOUT_MS,
    }).catch(() => undefined);
    if (output !== undefined) working.push(name);
  }
  return working;
}
