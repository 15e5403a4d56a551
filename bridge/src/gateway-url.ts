/** Which URLs the bridge dials: wss always, ws only in development and only to this computer (Transport and envelope: TLS is mandatory). */
import { isIP } from 'node:net';
import { CONNECT_PATH } from '@reelhost/bridge-protocol';
import { ConfigError } from './config-error.js';

/** True for names and addresses that can only mean this computer. */
export function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  if (isIP(host) === 4) return host.startsWith('127.');
  return host === '::1' || host === 'localhost';
}

/**
 * Reads `--gateway`. Without a path, `/v1/connect` is meant.
 * @throws ConfigError when the URL cannot be dialled, or must not be.
 */
export function gatewayUrl(text: string, insecureDev: boolean): URL {
  let url: URL;
  try {
    url = new URL(text.includes('://') ? text : `wss://${text}`);
  } catch (error) {
    throw new ConfigError('--gateway: not a URL; expected wss://host', error);
  }
  if (url.protocol !== 'wss:' && url.protocol !== 'ws:') {
    throw new ConfigError(`--gateway: ${url.protocol}// is not possible; use wss://`);
  }
  if (url.protocol === 'ws:' && !(insecureDev && isLoopback(url.hostname))) {
    throw new ConfigError(
      insecureDev
        ? '--gateway: ws:// is allowed to this computer only (127.0.0.1, ::1, localhost); use wss://'
        : '--gateway: ws:// is not encrypted; use wss:// (for development on one computer: --insecure-dev)',
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw new ConfigError('--gateway: no user name or password belongs into the URL');
  }
  if (url.pathname === '/' || url.pathname === '') url.pathname = CONNECT_PATH;
  url.hash = '';
  return url;
}
