/** What the bridge reads and writes on disk: identity files, journal, lock, control file, status file. */
import { generateKeyPairSync, verify } from 'node:crypto';
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { helloSignatureText } from '@reelhost/bridge-protocol';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { JOB, Rig } from '../tests/rig.js';
import { openStore } from './bridge-store.js';
import { ConfigError } from './config-error.js';
import { readControl, watchControl } from './control-file.js';
import { type Job, statusOf } from './core/index.js';
import { deviceIdentity, poolIdentity } from './identity.js';
import { AlreadyRunning, lockStateDir } from './state-lock.js';
import { openStatusFile } from './status-file.js';
import { suspendClock } from './suspend-clock.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'rh-bridge-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function file(name: string, text: string, mode = 0o600): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

describe('identity', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const pem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }));

  it('signs the hello of a device for the dialled host, with a fresh nonce each time [RB-HS-05] [RB-HS-07]', () => {
    const identity = deviceIdentity('device-1', file('key.pem', pem));
    const at = Date.UTC(2026, 6, 1);
    const auths = [identity.authFor('runner.example', at), identity.authFor('runner.example', at)];
    for (const auth of auths) {
      if (auth.kind !== 'device') throw new Error('not a device');
      expect(auth.ts).toBe('2026-07-01T00:00:00.000Z');
      const text = helloSignatureText('device-1', auth.ts, auth.nonce, 'runner.example');
      expect(verify(null, Buffer.from(text), publicKey, Buffer.from(auth.sig, 'base64url'))).toBe(true);
      expect(Buffer.from(auth.nonce, 'base64url').length).toBeGreaterThanOrEqual(16);
    }
    expect(new Set(auths.map((auth) => (auth.kind === 'device' ? auth.nonce : '')))).toHaveProperty('size', 2);
  });

  it.each([0o640, 0o604, 0o660, 0o644])('refuses a key others can read (%o) and says how to mend it', (mode) => {
    expect(() => deviceIdentity('d', file('key.pem', pem, mode))).toThrow(/chmod 600/);
  });

  it('refuses what is no Ed25519 private key, without quoting it', () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey.export({ type: 'pkcs8', format: 'pem' });
    expect(() => deviceIdentity('d', file('rsa.pem', String(rsa)))).toThrow(/Ed25519 is needed/);
    expect(() => deviceIdentity('d', file('text.pem', 'not a key'))).toThrow(/device init/);
    expect(() => deviceIdentity('d', join(dir, 'absent'))).toThrow(/ENOENT/);
    expect(() => deviceIdentity('d', dir)).toThrow(ConfigError);
  });

  it('reads the pool credential again for each hello, so that it can be rotated [RB-HS-10]', () => {
    const path = file('pool', 'first\n');
    const identity = poolIdentity('worker-1', path);
    expect(identity.authFor('h', 0)).toEqual({ kind: 'pool', credential: 'first', workerName: 'worker-1' });
    writeFileSync(path, 'second');
    expect(identity.authFor('h', 0)).toMatchObject({ credential: 'second' });
    expect(() => poolIdentity('w', file('empty', ' \n'))).toThrow(/empty/);
  });
});

describe('journal', () => {
  const job = (): Job => {
    const held = new Rig().connected().held().running('op-1').state.jobs.get(JOB);
    if (held === undefined) throw new Error('no job');
    return held;
  };
  const open = (boot = 'boot-1') => openStore(dir, boot, () => undefined);

  it('keeps held jobs across a restart, 0600, without running op, arguments or URLs', () => {
    const store = open();
    store.commit([{ kind: 'putJob', job: job() }]);
    store.close();
    expect(statSync(join(dir, 'bridge.sqlite')).mode & 0o777).toBe(0o600);
    const again = open();
    expect(again.restore(1_001_000)).toMatchObject([
      { jobId: JOB, epoch: 1, op: null, session: { state: 'reopening' } },
    ]);
    again.commit([{ kind: 'deleteJob', jobId: JOB }]);
    expect(again.restore(1_001_000)).toEqual([]);
    again.close();
  });

  it('forgets jobs whose lease is over, and all of them after a reboot', () => {
    const store = open();
    store.commit([{ kind: 'putJob', job: job() }]);
    expect(store.restore(1_000_000 + 44_500)).toEqual([]);
    store.commit([{ kind: 'putJob', job: job() }]);
    store.close();
    const rebooted = open('boot-2');
    expect(rebooted.restore(0)).toEqual([]);
    rebooted.close();
  });

  it('damage behind the first page, and a row that is no job, do not stop the runner either', () => {
    const many = open();
    many.commit(
      Array.from({ length: 60 }, (_, at) => ({
        kind: 'putJob' as const,
        job: { ...job(), jobId: `job-${at}`, specText: `{"s":"${'x'.repeat(500)}"}` },
      })),
    );
    many.close();
    const path = join(dir, 'bridge.sqlite');
    const bytes = readFileSync(path);
    expect(bytes.length).toBeGreaterThan(16_384);
    writeFileSync(path, bytes.fill(0xa5, 4_096));
    const onDamage = vi.fn();
    const store = openStore(dir, 'boot-1', onDamage);
    expect(onDamage).toHaveBeenCalledTimes(1);
    expect(store.restore(0)).toEqual([]);
    store.close();
    const database = new Database(path);
    database.prepare('INSERT INTO jobs VALUES (?, ?, ?, ?)').run('torn', 'boot-1', 9e15, '{"jobId":');
    database.close();
    const again = openStore(dir, 'boot-1', onDamage);
    expect(onDamage).toHaveBeenCalledTimes(2);
    expect(again.restore(0)).toEqual([]);
    again.close();
  });

  it('a damaged file is set aside and does not stop the runner', () => {
    writeFileSync(join(dir, 'bridge.sqlite'), Buffer.alloc(8_192, 7));
    const onDamage = vi.fn();
    const store = openStore(dir, 'boot-1', onDamage);
    expect(onDamage).toHaveBeenCalledWith(expect.stringContaining('bridge.sqlite.damaged-'));
    expect(store.restore(0)).toEqual([]);
    store.close();
    truncateSync(join(dir, 'bridge.sqlite'), 100);
    const after = openStore(dir, 'boot-1', onDamage);
    after.close();
  });
});

describe('lock', () => {
  it('lets one bridge have a state directory, and is free again afterwards', () => {
    const unlock = lockStateDir(dir);
    expect(() => lockStateDir(dir)).toThrow(AlreadyRunning);
    unlock();
    lockStateDir(dir)();
    expect(statSync(join(dir, 'bridge.lock')).mode & 0o777).toBe(0o600);
  });
});

describe('control file', () => {
  const text = (more: object): string => JSON.stringify({ schema: 'reelhost.bridge-control/1', ...more });

  it('pauses, with a note and an end; nonsense is not a control file', () => {
    expect(readControl(text({ paused: true, note: 'gaming' }), 0)).toEqual({
      paused: true,
      note: 'gaming',
      until: null,
    });
    expect(readControl(text({ paused: true, until: '2026-07-01T00:00:00Z' }), Date.UTC(2026, 6, 1))).toMatchObject({
      paused: false,
    });
    expect(readControl(text({ paused: false }), 0)).toMatchObject({ paused: false });
    for (const bad of ['', '{', '[]', 'null', '{"paused":"yes"}', '{}']) expect(readControl(bad, 0)).toBeNull();
  });

  it('is followed while it changes, and a file in the middle of nonsense changes nothing', async () => {
    file('bridge.control.json', text({ paused: true }));
    const changes: boolean[] = [];
    const onBad = vi.fn();
    const control = watchControl(dir, (change) => changes.push(change.paused), onBad);
    expect(control.current().paused).toBe(true);
    writeFileSync(join(dir, 'bridge.control.json'), '{ half');
    await vi.waitFor(() => expect(onBad).toHaveBeenCalledTimes(1), 5_000);
    expect(control.current().paused).toBe(true);
    writeFileSync(join(dir, 'bridge.control.json'), text({ paused: false }));
    await vi.waitFor(() => expect(changes.at(-1)).toBe(false), 5_000);
    control.close();
  });
});

describe('status file', () => {
  it('is whole, private, and tells state, reason and jobs without a secret', () => {
    const rig = new Rig().connected().held().running('op-1', 'ffmpeg');
    let now = rig.now;
    const facts = {
      gateway: 'wss://runner.example/v1/connect',
      name: 'device-1',
      kind: 'device' as const,
      version: '0.1.0',
    };
    const status = openStatusFile(
      dir,
      facts,
      () => statusOf(rig.state, now),
      () => ({ pauseNote: null, pausedUntil: null }),
    );
    now += 1_000;
    status.close();
    const read = JSON.parse(readFileSync(join(dir, 'bridge.status.json'), 'utf8'));
    expect(read).toMatchObject({
      schema: 'reelhost.bridge-status/1',
      pid: process.pid,
      state: 'connected',
      healthy: true,
      slots: 1,
      freeSlots: 0,
      jobs: [{ jobId: JOB, jobType: 'video.compile', epoch: 1, leaseLeftMs: 44_000, op: 'ffmpeg' }],
    });
    expect(JSON.stringify(read)).not.toContain('FIXTURE.job.token');
    expect(statSync(join(dir, 'bridge.status.json')).mode & 0o777).toBe(0o600);
    expect(readdirSync(dir)).toEqual(['bridge.status.json']);
  });
});

describe('clock', () => {
  /** Three clocks of a computer that runs, sleeps, and is set by hand. */
  function computer() {
    const time = { fine: 1_000, coarse: 500_000, wall: 1_700_000_000_000, askings: 0 };
    const clock = suspendClock({
      fineMs: () => time.fine,
      coarseMs: () => {
        time.askings += 1;
        return time.coarse;
      },
      wallMs: () => time.wall,
    });
    return {
      clock,
      time,
      run(ms: number): void {
        for (const name of ['fine', 'coarse', 'wall'] as const) time[name] += ms;
      },
      sleep(ms: number): void {
        for (const name of ['coarse', 'wall'] as const) time[name] += ms;
      },
    };
  }

  it('runs on through a suspend and never goes back', () => {
    const { clock, time, run, sleep } = computer();
    expect(clock.now()).toBe(500_000);
    run(1_000);
    expect(clock.now()).toBe(501_000);
    sleep(600_000);
    expect(clock.now()).toBe(1_101_000);
    time.coarse -= 50;
    time.fine -= 10;
    expect(clock.now()).toBe(1_101_000);
  });

  it('small differences of the coarse clock are not a suspend', () => {
    const { clock, time, run } = computer();
    time.coarse += 1_000;
    run(2_000);
    expect(clock.now()).toBe(502_000);
  });

  it('sees at once that a suspend has moved the wall clock, and within a second one that somebody has hidden by setting it back', () => {
    const { clock, time, run, sleep } = computer();
    run(10);
    sleep(50_000);
    expect(clock.now()).toBe(550_010);
    sleep(50_000);
    time.wall -= 50_000;
    run(1_000);
    expect(clock.now()).toBe(601_010);
  });

  it('takes no part in what is done to the wall clock, and hardly ever asks the coarse one', () => {
    const { clock, time, run } = computer();
    const before = time.askings;
    for (let n = 0; n < 100; n += 1) {
      run(1);
      clock.now();
    }
    expect(time.askings).toBe(before);
    time.wall += 3_600_000;
    run(1);
    expect(clock.now()).toBe(500_101);
    time.wall -= 7_200_000;
    run(1);
    expect(clock.now()).toBe(500_102);
  });
});
