/**
 * Builds the environment of ffmpeg and ffprobe from nothing. Nothing is inherited, because a variable may be an instruction: FFREPORT writes a log
 * anywhere, presets come from HOME, LADSPA_PATH loads code, http_proxy and FONTCONFIG_FILE redirect.
 */

/** `home` is an empty directory of the session; `fontconfigFile` names the configuration of the bundled fonts. */
export function childEnvironment(options: {
  home: string;
  temporary: string;
  fontconfigFile?: string;
}): Record<string, string> {
  return {
    PATH: '/usr/bin:/bin',
    HOME: options.home,
    TMPDIR: options.temporary,
    LANG: 'C.UTF-8',
    LC_ALL: 'C.UTF-8',
    AV_LOG_FORCE_NOCOLOR: '1',
    ...(options.fontconfigFile === undefined ? {} : { FONTCONFIG_FILE: options.fontconfigFile }),
  };
}
