/**
 * Checks of the way to the gateway, one step after the other, so that the first one that fails names the cause: name, connection, certificate, clock. They send
 * no credential: only a plain GET whose answer carries a date.
 */
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { rootCertificates } from 'node:tls';
import { type CheckResult, fail, pass, skip, warn } from './check.js';

const ANSWER_WITHIN_MS = 8_000;
/** The gateway refuses a hello whose clock is off by more (120 s); half of it is worth a word. */
const SKEW_REFUSED_SEC = 120;
const SKEW_REMARKABLE_SEC = 30;

/** Runs the steps. @param gateway undefined when the configuration names none */
export async function checkGateway(gateway: string | undefined, caFile: string | undefined): Promise<CheckResult[]> {
  if (gateway === undefined) return [skip('gateway', 'the configuration names no gateway')];
  const url = new URL(gateway);
  const proxy = process.env['HTTPS_PROXY'] ?? process.env['https_proxy'];
  if (proxy !== undefined && proxy !== '') {
    return [skip('gateway', 'a proxy is set; the bridge goes through it, and its log says how that went')];
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const address = await lookup(host).catch((error: NodeJS.ErrnoException) => error);
  if (address instanceof Error) {
    return [
      fail(
        'dns',
        `the name ${host} is not found (${address.code})`,
        'check the spelling of the gateway and the name servers',
      ),
    ];
  }
  const results = [pass('dns', `${host} is ${address.address}`)];
  const answer = await askForDate(url, caFile);
  if (answer instanceof Error) return [...results, connectionFailure(url, answer)];
  results.push(
    pass('gateway', `${url.host} answers (${url.protocol === 'wss:' ? 'certificate is right' : 'without TLS'})`),
  );
  return [...results, clockResult(answer)];
}

function askForDate(url: URL, caFile: string | undefined): Promise<string | undefined | Error> {
  const secure = url.protocol === 'wss:';
  const ca = caFile === undefined ? undefined : [...rootCertificates, readFileSync(caFile, 'utf8')];
  return new Promise((resolve) => {
    const receive = (response: IncomingMessage): void => {
      response.resume();
      resolve(response.headers.date);
    };
    const target = `${secure ? 'https:' : 'http:'}//${url.host}/`;
    const options = { timeout: ANSWER_WITHIN_MS, agent: false as const };
    const request = secure
      ? httpsRequest(target, { ...options, ...(ca && { ca }) }, receive)
      : httpRequest(target, options, receive);
    request.once('timeout', () => request.destroy(new Error('no answer')));
    request.once('error', resolve).end();
  });
}

function connectionFailure(url: URL, error: NodeJS.ErrnoException): CheckResult {
  const { code = '' } = error;
  if (/CERT|SIGNATURE|SELF_SIGNED|ALTNAME|ERR_TLS/.test(code)) {
    return fail(
      'tls',
      `the certificate of ${url.host} is not trusted (${code})`,
      'set ca_file when it is your own authority; check the clock when it "is not yet valid"',
    );
  }
  return fail(
    'gateway',
    `${url.host} cannot be reached (${code === '' ? error.message : code})`,
    'check firewall, proxy (HTTPS_PROXY) and address',
  );
}

function clockResult(date: string | undefined): CheckResult {
  const theirs = Date.parse(date ?? '');
  if (Number.isNaN(theirs)) return skip('clock', 'the gateway did not say what time it is');
  const skewSec = Math.round((Date.now() - theirs) / 1_000);
  const says = `this clock is ${Math.abs(skewSec)} s ${skewSec < 0 ? 'behind' : 'ahead'}`;
  const fix = 'switch on time synchronisation (timedatectl set-ntp true)';
  if (Math.abs(skewSec) > SKEW_REFUSED_SEC) return fail('clock', says, fix);
  if (Math.abs(skewSec) > SKEW_REMARKABLE_SEC) return warn('clock', says, fix);
  return pass('clock', 'right to within a few seconds');
}
