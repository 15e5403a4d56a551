/** Reads the tables that `ffmpeg -encoders` and `ffmpeg -filters` print. */

/** Encoders that run on special hardware have one of these endings. */
const HARDWARE = /_(nvenc|qsv|vaapi|videotoolbox|amf|v4l2m2m|vulkan|mf|omx|mediacodec|rkmpp|d3d12va)$/;

/** Names of video, audio and subtitle encoders, in the order they are listed. */
export function parseEncoders(output: string): string[] {
  return rows(output, /^ ([VAS])[F.][S.][X.][B.][D.] (\S+) /, 2);
}

/** Names of filters. */
export function parseFilters(output: string): string[] {
  return rows(output, /^ [T.][S.][C.]? ?(\S+) +\S+->\S+ /, 1).filter((name) => name !== '=');
}

/** The encoders among `names` that need hardware. */
export function hardwareEncoders(names: readonly string[]): string[] {
  return names.filter((name) => HARDWARE.test(name));
}

function rows(output: string, pattern: RegExp, group: number): string[] {
  const found: string[] = [];
  for (const line of output.split('\n')) {
    const name = pattern.exec(line)?.[group];
    if (name !== undefined && /^[A-Za-z0-9_.-]{1,64}$/.test(name)) found.push(name);
    if (found.length >= 2000) break;
  }
  return [...new Set(found)];
}
