/** A setting or a file the bridge cannot start with. The message says what to do; it holds no secret. Exit code 78. */
export class ConfigError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ConfigError';
  }
}
