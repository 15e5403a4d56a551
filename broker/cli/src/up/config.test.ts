import { describe, expect, it } from 'vitest';
import { CommandError } from '../exit-codes.js';
import { checkConfig, readConfig } from './config.js';

const places = {
  mode: 'user' as const,
  config: '/etc/reelhost/config.toml',
  stateDir: '/var/lib/reelhost',
  socket: '/run/x/tay.sock',
};
const bridge =
  '[bridge]\ngateway = "wss://runner.example.com/v1/connect"\ndevice_id = "d"\ndevice_key = "device.pem"\n';

function refusal(text: string): string {
  try {
    checkConfig(text, places);
  } catch (error) {
    if (error instanceof CommandError && error.code === 78) return error.message;
    throw error;
  }
  throw new Error('it was accepted');
}

describe('the configuration of up', () => {
  it('fills in defaults and makes paths absolute, relative to its own file', () => {
    const config = checkConfig(`${bridge}[[executor]]\nname = "ffmpeg"\n`, places);
    expect(config).toMatchObject({
      stateDir: '/var/lib/reelhost',
      socket: '/run/x/tay.sock',
      log_level: 'info',
      broker: { enabled: true },
      bridge: { device_key: '/etc/reelhost/device.pem', insecure_dev: false, drain_limit_sec: 120 },
      executor: [{ name: 'ffmpeg', count: 1, args: [] }],
      restart: { max_deaths: 10, window_sec: 300 },
    });
  });

  it.each([
    ['not TOML', '[bridge\n', /line 1, column \d+/],
    ['an unknown key at the top', 'stat_dir = "/x"', /stat_dir: there is no such key/],
    ['an unknown key inside', `${bridge}slot = 2`, /bridge\.slot: there is no such key/],
    [
      'a wrong type deep inside',
      '[[executor]]\nname = "ffmpeg"\n[[executor]]\nname = "x"\ncount = "two"',
      /executor\[1\]\.count: /,
    ],
    [
      'an address that is no WebSocket',
      bridge.replace('wss:', 'https:'),
      /bridge\.gateway: must be a wss:\/\/ address/,
    ],
    ['no identity', '[bridge]\ngateway = "wss://x.example"', /bridge: give either device_id and device_key, or/],
    ['two identities', `${bridge}worker_name = "w"\npool_credential_file = "f"`, /bridge: give either/],
    ['a bad executor name', '[[executor]]\nname = "../evil"', /executor\[0\]\.name: must be lower-case/],
    ['a bad variable name', '[[executor]]\nname = "a"\nenv = { "A=B" = "c" }', /executor\[0\]\.env/],
    ['a level nobody knows', 'log_level = "loud"', /log_level: /],
    ['an executor nobody knows, without a command', '[[executor]]\nname = "mine"', /executor\[0\]\.name: .*command/],
    ['a socket path that is too long', `socket = "/tmp/${'s'.repeat(120)}"`, /socket: .*100/],
  ])('refuses %s and says where', (_what, text, expected) => {
    expect(refusal(text)).toMatch(expected);
  });

  it('never repeats a value, which might be a secret in the wrong place', () => {
    expect(refusal('log_level = "hunter2-secret"')).not.toContain('hunter2');
    expect(refusal(`${bridge}device_secret = "hunter2-secret"`)).not.toContain('hunter2');
  });

  it('says so when there is no file', async () => {
    await expect(readConfig({ ...places, config: '/nonexistent/reelhost.toml' })).rejects.toThrow(
      /there is no such file/,
    );
  });
});
