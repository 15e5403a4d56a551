/**
 * Through which proxy a host is reached: HTTPS_PROXY and NO_PROXY, upper or lower case, as other tools read them. A proxy URL may hold a password, so it is
 * never logged or shown; {@link describeRoute} is for people.
 */

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The proxy URL for a secure connection to `host`:`port`, or null for a direct one. A value without scheme means http. */
export function proxyFor(host: string, port: number, environment: Environment): URL | null {
  const value =
    environment['HTTPS_PROXY'] ?? environment['https_proxy'] ?? environment['ALL_PROXY'] ?? environment['all_proxy'];
  if (value === undefined || value.trim() === '') return null;
  if (isExcluded(host, port, environment['NO_PROXY'] ?? environment['no_proxy'] ?? '')) return null;
  return new URL(value.includes('://') ? value : `http://${value}`);
}

/** NO_PROXY: exact names, `.suffix` or `*.suffix`, a bare domain with its subdomains, `*`, each with an optional port. */
function isExcluded(host: string, port: number, list: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, '$1');
  return list
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      const withPort = /^(.*):(\d+)$/.exec(entry);
      const isAddress = entry.includes('::');
      const pattern = (withPort === null || isAddress ? entry : (withPort[1] ?? ''))
        .toLowerCase()
        .replace(/^\[(.*)\]$/, '$1');
      if (withPort !== null && !isAddress && Number(withPort[2]) !== port) return false;
      if (pattern === '*') return true;
      const suffix = pattern.replace(/^\*?\./, '');
      return name === suffix || name.endsWith(`.${suffix}`);
    });
}

/** "direct", or the proxy without its password. */
export function describeRoute(proxy: URL | null): string {
  return proxy === null ? 'direct' : `proxy ${proxy.hostname}:${proxy.port === '' ? '80' : proxy.port}`;
}
