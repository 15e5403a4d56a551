/**
 * Decides whether an https request goes through a proxy, from the usual environment variables. Plain http is used to loopback only and never
 * goes through one. The lower-case name wins over the upper-case one, as in curl.
 */

/** The variables that count; the values may be absent. */
export type ProxyVariables = Readonly<Record<string, string | undefined>>;

/** The proxy's URL for an https host, or undefined for a direct connection. `host` has no brackets, `port` is a number. */
export function proxyFor(host: string, port: number, variables: ProxyVariables): string | undefined {
  const proxy = first(variables, 'https_proxy', 'HTTPS_PROXY') ?? first(variables, 'all_proxy', 'ALL_PROXY');
  if (proxy === undefined) return undefined;
  const exceptions = first(variables, 'no_proxy', 'NO_PROXY') ?? '';
  if (isException(host.toLowerCase(), port, exceptions)) return undefined;
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(proxy) ? proxy : `http://${proxy}`;
}

/** `*`, `host`, `.domain`, `*.domain`, `host:port`, `[v6]:port` and IPv4 networks `a.b.c.d/n`, separated by commas or blanks. */
function isException(host: string, port: number, list: string): boolean {
  for (const raw of list.toLowerCase().split(/[\s,]+/)) {
    if (raw === '') continue;
    if (raw === '*') return true;
    const { name, port: wanted } = splitPort(raw);
    if (wanted !== undefined && wanted !== port) continue;
    const bare = name.replace(/^\*?\./, '');
    if (host === bare || host.endsWith(`.${bare}`) || inNetwork(host, name)) return true;
  }
  return false;
}

function splitPort(entry: string): { name: string; port?: number } {
  const bracket = /^\[([^\]]+)\](?::(\d+))?$/.exec(entry);
  if (bracket) return { name: bracket[1] ?? '', ...(bracket[2] ? { port: Number(bracket[2]) } : {}) };
  const plain = /^([^:]+):(\d+)$/.exec(entry);
  return plain ? { name: plain[1] ?? '', port: Number(plain[2]) } : { name: entry };
}

function inNetwork(host: string, entry: string): boolean {
  const match = /^(\d+\.\d+\.\d+\.\d+)\/(\d+)$/.exec(entry);
  const address = ipv4(host);
  const base = ipv4(match?.[1] ?? '');
  const bits = Number(match?.[2]);
  if (address === undefined || base === undefined || !(bits >= 0 && bits <= 32)) return false;
  const size = 2 ** (32 - bits);
  return Math.floor(address / size) === Math.floor(base / size);
}

function ipv4(text: string): number | undefined {
  const parts = text.split('.');
  if (parts.length !== 4 || !parts.every((part) => /^\d{1,3}$/.test(part) && Number(part) <= 255)) return undefined;
  return parts.reduce((sum, part) => sum * 256 + Number(part), 0);
}

function first(variables: ProxyVariables, ...names: string[]): string | undefined {
  for (const name of names) {
    const value = variables[name]?.trim();
    if (value) return value;
  }
  return undefined;
}

/** Loopback names and addresses: the only hosts that plain http is used for. */
export function isLoopback(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[|\]$/g, '');
  return (
    name === 'localhost' ||
    name.endsWith('.localhost') ||
    name === '::1' ||
    (ipv4(name) !== undefined && name.startsWith('127.'))
  );
}
