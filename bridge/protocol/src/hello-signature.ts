/**
 * What a desktop device signs in its hello (Connection handshake and authentication). The signing itself belongs to whoever holds the key.
 */

/**
 * The UTF-8 string under the Ed25519 signature: `reelbolt-runner-hello-v1|<deviceId>|<ts>|<nonce>|<gatewayHost>`.
 * @param gatewayHost the hostname that was dialled, see `gatewayHostOf`.
 */
export function helloSignatureText(deviceId: string, ts: string, nonce: string, gatewayHost: string): string {
  return `reelbolt-runner-hello-v1|${deviceId}|${ts}|${nonce}|${gatewayHost}`;
}

/**
 * The gatewayHost of a dialled URL or of a Host header: the hostname without port, in lower case; an IPv6 address without its brackets.
 * @throws TypeError when the text is neither a URL nor a host.
 */
export function gatewayHostOf(urlOrHost: string): string {
  const url = urlOrHost.includes('://') ? urlOrHost : `ws://${urlOrHost}`;
  return new URL(url).hostname.toLowerCase().replace(/^\[(.*)\]$/, '$1');
}
