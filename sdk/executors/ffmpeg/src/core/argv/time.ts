/** ffmpeg's time syntax as a number. */

/** Microseconds of `12.5`, `00:01:30.25`, `500ms`, `20us`; undefined when it is none of these. */
export function timeUs(text: string): number | undefined {
  const clock = /^(-)?(?:(\d+):)?(\d{1,2}):(\d{1,2}(?:\.\d*)?)$/.exec(text);
  if (clock !== null) {
    const seconds = Number(clock[2] ?? 0) * 3600 + Number(clock[3]) * 60 + Number(clock[4]);
    return Math.round((clock[1] === undefined ? 1 : -1) * seconds * 1e6);
  }
  const plain = /^([-+]?(?:\d+\.?\d*|\.\d+))(s|ms|us)?$/.exec(text);
  if (plain === null) return undefined;
  const scale = { s: 1e6, ms: 1e3, us: 1 }[plain[2] ?? 's'] ?? 1e6;
  return Math.round(Number(plain[1]) * scale);
}
