/** Runs once before the suites: names an ffmpeg and ffprobe for every test, so that they pass on a machine that has none installed. */
import { embeddedFfmpeg } from '../fixtures/media/embedded-ffmpeg.js';

export async function setup(): Promise<void> {
  const programs = await embeddedFfmpeg();
  process.env['REELHOST_FFMPEG'] = programs.ffmpeg;
  process.env['REELHOST_FFPROBE'] = programs.ffprobe;
  if (programs.origin === 'embedded') {
    process.stderr.write(`tests use the embedded ffmpeg ${programs.version} (none on PATH)\n`);
  }
}
