/**
 * Decides how a stream is written to: colour or not, one line or moving lines. The answer goes to stdout, everything else to stderr.
 * Nothing is told by colour alone.
 */
import pc from 'picocolors';

/** The colour functions; each returns its text unchanged where there is no colour. */
export type Colors = ReturnType<typeof pc.createColors>;

/** What the flags `--color` and `--no-color` say; undefined when neither was given. */
export type ColorFlag = boolean | undefined;

/** Flag beats environment (NO_COLOR, FORCE_COLOR, TERM=dumb) beats "is it a terminal". */
export function useColor(stream: { isTTY?: boolean }, flag: ColorFlag, env: NodeJS.ProcessEnv = process.env): boolean {
  if (flag !== undefined) return flag;
  if (env['NO_COLOR'] !== undefined && env['NO_COLOR'] !== '') return false;
  const forced = env['FORCE_COLOR'];
  if (forced !== undefined && forced !== '' && forced !== '0') return true;
  return stream.isTTY === true && env['TERM'] !== 'dumb';
}

/** Colours for a stream. */
export function colorsFor(stream: { isTTY?: boolean }, flag: ColorFlag): Colors {
  return pc.createColors(useColor(stream, flag));
}

/** Whether lines may be redrawn: a terminal that can move its cursor, and nobody records it. */
export function canRedraw(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv = process.env): boolean {
  return stream.isTTY === true && env['TERM'] !== 'dumb' && (env['CI'] === undefined || env['CI'] === '');
}

/** Writes the answer. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Writes exactly one JSON document. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}

/** Writes a remark for a person. */
export function remark(text: string): void {
  process.stderr.write(`${text}\n`);
}
