/**
 * Where secrets go in a job's arguments: every JSON string that is exactly `reelhost-secret:<name>`, never a key. docs/local-protocol.md, Secrets.
 * The text is never parsed: everything else in it stays as it is, byte for byte.
 */
const PLACEHOLDER = /(?<!\\)"reelhost-secret:([^"\\]*)"(?!\s*:)/g;

/** What a job's secrets cost, in UTF-16 units. */
export interface SecretsWeight {
  /** All secrets together, used or not. */
  readonly held: number;
  /** By how much the arguments grow when the secrets are put in. */
  readonly growth: number;
}

/** The weight of a job without secrets. */
export const NO_SECRETS: SecretsWeight = { held: 0, growth: 0 };

/** The arguments with the secrets in their places; a name nobody gave a secret for stays as it is. */
export function putSecrets(args: string, secrets: Readonly<Record<string, string>>): string {
  return args.replace(PLACEHOLDER, (literal, name: string) =>
    Object.hasOwn(secrets, name) ? JSON.stringify(secrets[name]) : literal,
  );
}

/** Weighs secrets without putting them in: one secret may stand in thousands of places. */
export function weighSecrets(args: string, secrets: Readonly<Record<string, string>>): SecretsWeight {
  const sizes = new Map<string, number>();
  let held = 0;
  for (const [name, secret] of Object.entries(secrets)) {
    sizes.set(name, JSON.stringify(secret).length);
    held += name.length + secret.length;
  }
  let growth = 0;
  for (const [literal, name] of args.matchAll(PLACEHOLDER)) {
    const size = sizes.get(name ?? '');
    if (size !== undefined) growth += size - literal.length;
  }
  return { held, growth: Math.max(0, growth) };
}
