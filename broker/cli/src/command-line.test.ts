import { type ChildProcessWithoutNullStreams, spawn, spawnSync } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

const REELHOST = fileURLToPath(new URL('../bin/reelhost.js', import.meta.url));
let dir: string;
let children: ChildProcessWithoutNullStreams[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'rh-cli-'));
  children = [];
});
afterEach(async () => {
  for (const child of children) {
    if (child.exitCode === null && child.signalCode === null) {
      const gone = new Promise((resolve) => child.once('close', resolve));
      child.kill('SIGTERM');
      await gone;
    }
  }
  rmSync(dir, { recursive: true, force: true });
});

interface Answer {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function reelhost(...args: string[]): Answer {
  const env = {
    PATH: process.env['PATH'],
    HOME: dir,
    REELHOST_HOME: join(dir, 'home'),
    TAY_SOCKET_PATH: join(dir, 'b.sock'),
  };
  const { status, stdout, stderr } = spawnSync(process.execPath, [REELHOST, ...args], {
    env,
    encoding: 'utf8',
    cwd: dir,
  });
  return { code: status, out: stdout, err: stderr };
}

/** Starts `reelhost up` and collects its events. */
class Up {
  readonly child: ChildProcessWithoutNullStreams;
  readonly events: Record<string, unknown>[] = [];
  readonly ended: Promise<number | null>;
  #wake: (() => void)[] = [];
  #rest = '';

  constructor(...args: string[]) {
    this.child = spawn(process.execPath, [REELHOST, 'up', '--config', join(dir, 'up.toml'), ...args], {
      stdio: 'pipe',
    });
    children.push(this.child);
    this.child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (this.#rest + chunk).split('\n');
      this.#rest = lines.pop() ?? '';
      for (const line of lines) if (line.startsWith('{')) this.events.push(JSON.parse(line) as Record<string, unknown>);
      for (const wake of this.#wake.splice(0)) wake();
    });
    this.ended = new Promise((resolve) => this.child.once('close', resolve));
  }

  async event(name: string, where: Record<string, unknown> = {}, nth = 1): Promise<Record<string, unknown>> {
    for (;;) {
      const matches = this.events.filter(
        (event) => event['event'] === name && Object.entries(where).every(([key, value]) => event[key] === value),
      );
      const found = matches[nth - 1];
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#wake.push(resolve));
    }
  }
}

/** Gone, or only waiting for somebody to take note of its end. */
function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return /^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return true;
  }
}

function config(text: string): void {
  writeFileSync(
    join(dir, 'up.toml'),
    `state_dir = "state"\nsocket = ${JSON.stringify(join(dir, 'run', 'b.sock'))}\n${text}`,
  );
}

describe('the command line', () => {
  it('helps with examples and the exit codes', () => {
    const { code, out } = reelhost('--help');
    expect(code).toBe(0);
    expect(out).toContain('Examples:');
    expect(out).toContain('77 not paired');
  });

  it.each([
    [['statsu'], 'Did you mean status?'],
    [['status', '--jsn'], 'Did you mean --json?'],
    [['pause', '--for', 'a while'], 'Write it like 90s'],
    [['executor', 'nonsense'], 'there is no executor "nonsense"'],
    [['executor'], 'say which executor'],
    [['health', '--live', '--ready'], 'cannot be used with'],
  ])('refuses %j with exit code 2 and says what would be right', (args, hint) => {
    const { code, out, err } = reelhost(...args);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(hint);
  });

  it('says a foreseen error as JSON too when asked for JSON', () => {
    const { code, out } = reelhost('up', '--config', 'nowhere.toml', '--json');
    expect(code).toBe(2); // up has no --json, and says so
    expect(out).toBe('');
    const missing = reelhost('device', 'init', '--json', '--out', '/proc/self/nowhere/key.pem');
    expect(JSON.parse(missing.out)).toMatchObject({
      schema: 'reelhost.error/1',
      exitCode: 1,
      message: expect.stringContaining('no folder can be made in /proc/self'),
    });
  });

  it('has a `reason` in the line of every daemon that does not start', () => {
    for (const [event, reason, ...args] of [
      ['broker.refused', 'no folder can be made', 'broker', '--state-dir', '/proc/x'],
      ['config.invalid', 'ws:// is not encrypted', 'bridge', '--gateway', 'ws://127.0.0.1:1'],
      ['executor.unusable', '/nowhere/ffmpeg', 'executor', 'ffmpeg', '--ffmpeg', '/nowhere/ffmpeg'],
    ] as const) {
      const { code, err } = reelhost(...args);
      const line: unknown = JSON.parse(err.trimEnd().split('\n').at(-1) ?? '');
      expect({ code, line }).toMatchObject({ code: 78, line: { event, reason: expect.stringContaining(reason) } });
    }
  });

  it('says at once where no folder can be made', () => {
    const key = join(dir, 'key.pem');
    reelhost('device', 'init', '--out', key);
    const device = ['--device-id', 'd', '--device-key', key, '--gateway', 'wss://127.0.0.1:1'];
    writeFileSync(join(dir, 'state.toml'), 'state_dir = "/proc/x"\n');
    writeFileSync(join(dir, 'socket.toml'), 'socket = "/proc/x/b.sock"\n');
    const said = "no folder can be made in /proc, mkdir '/proc/x'";
    for (const [exit, ...args] of [
      [78, 'broker', '--state-dir', '/proc/x'],
      [78, 'bridge', '--state-dir', '/proc/x', ...device],
      [78, 'up', '--config', join(dir, 'state.toml')],
      [78, 'up', '--config', join(dir, 'socket.toml')],
      [1, 'pause', '--state-dir', '/proc/x'],
    ] as const) {
      const { code, err } = reelhost(...args);
      expect({ args, code, err }).toEqual({ args, code: exit, err: expect.stringContaining(said) });
    }
  });

  it('uses colour only when told to, and never by environment against a flag', () => {
    const esc = '\u001b[';
    expect(reelhost('status').out).not.toContain(esc);
    expect(reelhost('--color', 'status').out).toContain(esc);
  });

  it('prints where things lie without making them', () => {
    const { out } = reelhost('paths', '--json');
    expect(JSON.parse(out)).toMatchObject({
      schema: 'reelhost.paths/1',
      stateDir: join(dir, 'home', 'state'),
      socket: join(dir, 'b.sock'),
    });
    expect(readdirSync(dir)).toEqual([]);
  });

  it('names the versions of all parts', () => {
    const { out } = reelhost('version', '--json');
    expect(JSON.parse(out)).toMatchObject({
      schema: 'reelhost.version/1',
      node: process.versions.node,
      parts: { '@reelhost/broker': '0.1.0' },
    });
  });
});

describe('device init', () => {
  it('makes an Ed25519 key for the owner only and prints its public half', () => {
    const file = join(dir, 'keys', 'device.pem');
    const { code, out } = reelhost('device', 'init', '--out', file, '--json');
    const said = JSON.parse(out) as { publicKey: string; publicKeyPem: string };
    expect(code).toBe(0);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(join(dir, 'keys')).mode & 0o777).toBe(0o700);
    const derived = createPublicKey(readFileSync(file)).export({ format: 'jwk' });
    expect(derived).toMatchObject({ crv: 'Ed25519', x: said.publicKey });
    expect(createPublicKey(said.publicKeyPem).export({ format: 'jwk' })).toEqual(derived);
    expect(out).not.toContain('PRIVATE');
  });

  it('never touches what is there, not even through a symbolic link', () => {
    writeFileSync(join(dir, 'old.pem'), 'old');
    symlinkSync(join(dir, 'elsewhere'), join(dir, 'link.pem'));
    for (const name of ['old.pem', 'link.pem']) {
      const { code, err } = reelhost('device', 'init', '--out', join(dir, name));
      expect(code).toBe(2);
      expect(err).toContain('is left as it is');
    }
    expect(readFileSync(join(dir, 'old.pem'), 'utf8')).toBe('old');
    expect(existsSync(join(dir, 'elsewhere'))).toBe(false);
  });
});

describe('status and health when nothing runs', () => {
  it('say so with exit code 3', () => {
    const status = reelhost('status', '--json');
    expect(status.code).toBe(3);
    expect(JSON.parse(status.out)).toMatchObject({
      schema: 'reelhost.status/1',
      state: 'not_running',
      broker: { answers: false },
    });
    expect(reelhost('health').code).toBe(3);
  });

  it('show a bridge that lives but has gone silent as stuck', () => {
    const file = {
      schema: 'reelhost.bridge-status/1',
      pid: process.pid,
      state: 'connected',
      healthy: true,
      updatedAt: new Date(Date.now() - 60_000),
    };
    writeFileSync(join(dir, 'bridge.status.json'), JSON.stringify(file));
    const { code, out } = reelhost('status', '--json', '--state-dir', dir);
    const codes = (JSON.parse(out) as { troubles: { code: string }[] }).troubles.map((trouble) => trouble.code);
    expect({ code, codes }).toEqual({ code: 4, codes: ['broker_not_running', 'bridge_stuck'] });
  });

  it('survive a status file of nonsense', () => {
    for (const text of ['', '[]', '{"pid":"x","jobs":{},"updatedAt":5}', '{"jobs":[1,{}]}']) {
      writeFileSync(join(dir, 'bridge.status.json'), text);
      expect(reelhost('status', '--state-dir', dir).code).toBe(3);
    }
  });
});

describe('pause and resume', () => {
  it('leave the wish for a bridge that does not run yet', () => {
    const { code, out } = reelhost('pause', '--state-dir', dir, '--note', 'my own film', '--for', '2h', '--json');
    expect({ code, said: JSON.parse(out) }).toMatchObject({ code: 0, said: { paused: true, heard: 'not-running' } });
    const wish = JSON.parse(readFileSync(join(dir, 'bridge.control.json'), 'utf8')) as Record<string, string>;
    expect(wish).toMatchObject({ schema: 'reelhost.bridge-control/1', paused: true, note: 'my own film' });
    expect(Date.parse(wish['until'] ?? '') - Date.parse(wish['requestedAt'] ?? '')).toBeCloseTo(7_200_000, -3);
    expect(statSync(join(dir, 'bridge.control.json')).mode & 0o777).toBe(0o600);
    reelhost('resume', '--state-dir', dir);
    expect(JSON.parse(readFileSync(join(dir, 'bridge.control.json'), 'utf8'))).toMatchObject({ paused: false });
  });
});

describe('up', () => {
  it('starts a broker, starts it again when it is killed, and leaves nothing behind', async () => {
    config('[restart]\nfirst_pause_ms = 20\n');
    const up = new Up();
    await up.event('broker.ready');
    const first = await up.event('up.part_started');
    process.kill(Number(first['pid']), 'SIGKILL');
    const second = await up.event('broker.ready', {}, 2);
    expect(second).toMatchObject({ generation: 2 });
    expect(await up.event('up.part_died')).toMatchObject({ part: 'broker', signal: 'SIGKILL' });
    const shown = reelhost(
      'status',
      '--json',
      '--state-dir',
      join(dir, 'state'),
      '--socket',
      join(dir, 'run', 'b.sock'),
    );
    expect(JSON.parse(shown.out)).toMatchObject({
      broker: { answers: true },
      up: { alive: true, parts: [{ name: 'broker', restarts: 1 }] },
    });
    up.child.kill('SIGTERM');
    expect(await up.ended).toBe(0);
    expect(existsSync(join(dir, 'state', 'up.status.json'))).toBe(false);
    expect(existsSync(join(dir, 'run', 'b.sock'))).toBe(false);
  });

  it('refuses to run beside a running one, with exit code 5', async () => {
    config('');
    const up = new Up();
    await up.event('broker.ready');
    const { code, err } = reelhost('up', '--config', join(dir, 'up.toml'));
    expect(code).toBe(5);
    expect(err).toContain('runs already on');
  });

  it('ends what a dead executor left in its process group, and restarts it', async () => {
    const executor =
      'import{spawn}from"node:child_process";const c=spawn("sleep",["60"]);console.error(JSON.stringify({event:"mine",child:c.pid}))';
    config(
      `[[executor]]\nname = "mine"\ncommand = [${JSON.stringify(process.execPath)}, "--input-type=module", "-e", ${JSON.stringify(executor)}]\n[restart]\nfirst_pause_ms = 20\n`,
    );
    const up = new Up();
    const leftover = Number((await up.event('mine'))['child']);
    const started = await up.event('up.part_started', { part: 'executor mine' });
    process.kill(Number(started['pid']), 'SIGKILL');
    await up.event('mine', {}, 2);
    expect(isGone(leftover)).toBe(true);
  });

  it('gives an executor only what it may know', async () => {
    const tell = 'console.error(JSON.stringify({event:"env",keys:Object.keys(process.env)}));setInterval(()=>{},1000)';
    config(
      `[[executor]]\nname = "mine"\ncommand = [${JSON.stringify(process.execPath)}, "-e", ${JSON.stringify(tell)}]\nenv = { MINE = "1" }\n`,
    );
    process.env['AWS_SECRET_ACCESS_KEY'] = 'canary';
    const up = new Up();
    delete process.env['AWS_SECRET_ACCESS_KEY'];
    const { keys } = (await up.event('env')) as { keys: string[] };
    expect(keys).toEqual(expect.arrayContaining(['PATH', 'MINE', 'TAY_SOCKET_PATH']));
    expect(keys).not.toContain('AWS_SECRET_ACCESS_KEY');
  });

  it('ends with the exit code of a part that cannot work with this configuration', async () => {
    config('[bridge]\ngateway = "wss://127.0.0.1:1"\ndevice_id = "d"\ndevice_key = "missing.pem"\n');
    const up = new Up();
    expect(await up.ended).toBe(78);
    expect(await up.event('up.part_given_up')).toMatchObject({ part: 'bridge' });
  });

  it('does not outlive what started it when it is killed with -9: its parts stop by themselves', async () => {
    config('');
    const up = new Up();
    await up.event('broker.ready');
    const { pid } = await up.event('up.part_started');
    const ended = up.event('broker.stopped');
    up.child.kill('SIGKILL');
    await ended;
    // It says so a moment before it is gone.
    await vi.waitFor(() => expect(isGone(Number(pid))).toBe(true), { timeout: 20_000, interval: 20 });
    const { code } = reelhost('status', '--state-dir', join(dir, 'state'), '--socket', join(dir, 'run', 'b.sock'));
    expect({ code, pid: Number(pid) > 0 }).toEqual({ code: 3, pid: true });
  });

  it('clears what a killed up left, and never touches a process that only has the same id', async () => {
    // A part that does not stop by itself, as one that is busy: it holds out until it is asked a second time.
    const stubborn =
      'let n=0;process.on("SIGTERM",()=>{if(++n>0)process.exit(0)});console.error(JSON.stringify({event:"mine"}));setInterval(()=>{},1000)';
    config(
      `[[executor]]\nname = "mine"\ncommand = [${JSON.stringify(process.execPath)}, "-e", ${JSON.stringify(stubborn)}]\n`,
    );
    const first = new Up();
    const { pid: left } = await first.event('up.part_started', { part: 'executor mine' });
    await first.event('mine');
    const gone = new Promise((resolve) => first.child.once('exit', resolve));
    first.child.kill('SIGKILL');
    await gone;
    const file = join(dir, 'state', 'up.status.json');
    const status = JSON.parse(readFileSync(file, 'utf8')) as { parts: Record<string, unknown>[] };
    status.parts.push({ name: 'stranger', pid: process.pid, mark: 'another start', phase: 'running' });
    writeFileSync(file, JSON.stringify(status));
    const second = new Up();
    const cleared = await second.event('up.ends_predecessor');
    expect(cleared['parts']).toContain('executor mine');
    expect(cleared['parts']).not.toContain('stranger');
    await second.event('broker.ready');
    expect(isGone(Number(left))).toBe(true);
  });

  it('checks a configuration without starting anything', () => {
    config('[[executor]]\nname = "ffmpeg"\ncount = 2\n');
    const { code, out } = reelhost('up', '--check', '--config', join(dir, 'up.toml'));
    expect({ code, out }).toMatchObject({ code: 0 });
    expect(out).toContain('broker, executor ffmpeg 1, executor ffmpeg 2');
    expect(existsSync(join(dir, 'state'))).toBe(false);
  });

  it('checks the files that a configuration names, and says what to do', () => {
    config('[bridge]\ngateway = "wss://127.0.0.1:1"\ndevice_id = "d"\ndevice_key = "d.pem"\n');
    const check = (): Answer => reelhost('up', '--check', '--config', join(dir, 'up.toml'));
    expect(check()).toMatchObject({ code: 78, err: expect.stringContaining('reelhost device init --out') });
    writeFileSync(join(dir, 'd.pem'), 'no key', { mode: 0o600 });
    expect(check()).toMatchObject({ code: 78, err: expect.stringContaining('no private key') });
  });

  it('never closes a folder that everybody uses', () => {
    const shared = join(dir, 'shared');
    mkdirSync(shared);
    chmodSync(shared, 0o1777);
    const { code, err } = reelhost('broker', '--state-dir', shared);
    expect({ code, err }).toMatchObject({ code: 78, err: expect.stringContaining('shared_state_dir') });
    expect(statSync(shared).mode & 0o7777).toBe(0o1777);
  });

  it('lets a daemon find its state directory as the other commands do', () => {
    writeFileSync(join(dir, 'taken'), '');
    const env = { PATH: process.env['PATH'], HOME: dir, REELHOST_STATE_DIR: join(dir, 'taken', 'state') };
    const { status, stderr } = spawnSync(process.execPath, [REELHOST, 'broker', '--socket', join(dir, 'b.sock')], {
      env,
      encoding: 'utf8',
    });
    expect({ status, stderr }).toMatchObject({ status: 78, stderr: expect.stringContaining(join(dir, 'taken')) });
  });
});
