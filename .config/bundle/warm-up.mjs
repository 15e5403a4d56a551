/**
 * Runs a freshly bundled program as one would start it, and writes code caches of what it used: a cache made without a run would lack every function that is
 * compiled on its first call. Argument: the `dist/` of the program. Nothing is left behind but the caches.
 */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const dist = process.argv[2];
const launch = createRequire(import.meta.url)(join(dist, 'launch.cjs'));
const folder = mkdtempSync(join(tmpdir(), 'reelhost-warm-up-'));
const places = ['--socket', join(folder, 's'), '--state-dir', join(folder, 'state')];
const HELLO = '{"version":1,"type":"hello","request_id":"h","mode":"client","runtime_id":"warm-up"}';

/** Asks the broker one thing, as soon as it listens, and stops it. */
async function broker({ run }) {
  const running = run(places);
  const frame = Buffer.alloc(4 + HELLO.length);
  frame.writeUInt32BE(HELLO.length);
  frame.write(HELLO, 4);
  for (let tries = 0; tries < 500 && !(await answers(frame)); tries++) await delay(10);
  process.kill(process.pid, 'SIGTERM');
  return await running;
}

function answers(frame) {
  return new Promise((resolve) => {
    const socket = connect(join(folder, 's'));
    socket.once('connect', () => socket.write(frame));
    socket.once('error', () => resolve(false));
    socket.once('data', () => {
      socket.destroy();
      resolve(true);
    });
  });
}

/** Lets the bridge look for a broker and a gateway that are not there. */
async function bridge({ run }) {
  const key = join(folder, 'key.pem');
  const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' });
  writeFileSync(key, pem, { mode: 0o600 });
  const device = ['--device-id', 'warm-up', '--device-key', key];
  const running = run([...places, ...device, '--gateway', 'ws://127.0.0.1:1', '--insecure-dev']);
  await delay(500);
  process.kill(process.pid, 'SIGTERM');
  return await running;
}

/** The commands for a person; becoming a daemon comes last, because it ends the process. */
async function command({ main }) {
  const config = join(folder, 'up.toml');
  writeFileSync(config, 'state_dir = "state"\nsocket = "s"\n');
  const commands = [['--help'], ['version'], ['paths'], ['up', '--check', '--config', config]];
  for (const argv of [...commands, ['health', ...places], ['status', '--json', ...places]]) await main(argv);
  return await main(['broker', '--help']);
}

process.once('exit', (code) => {
  rmSync(folder, { recursive: true, force: true });
  if (code === 0) launch.saveCodeCaches(writeFileSync);
});
const program = launch.load();
const start = program.run === undefined ? command : dist.includes('bridge') ? bridge : broker;
// Whatever a library left open must not keep this process.
process.exit(await start(program));
