/** The socket path is decided as everywhere else: the order, the limits, and that nothing explicit is silently replaced. */
import { describe, expect, it } from 'vitest';
import { resolveSocketPath } from './socket-path.js';

const long = `/${'x'.repeat(100)}`;

/** A host on which these directories exist and may be written to. */
function host(usable: readonly string[], runTay = false): Parameters<typeof resolveSocketPath>[2] {
  return { uid: 1000, isDirectory: (path) => path === '/run/tay' && runTay, isUsable: (path) => usable.includes(path) };
}

describe('the socket path', () => {
  it.each([
    ['the explicit path first', '/a/t.sock', { TAY_SOCKET_PATH: '/b' }, [], '/a/t.sock'],
    ['an explicit path normalised', '/a/./b/../t.sock', {}, [], '/a/t.sock'],
    ['the environment next', undefined, { TAY_SOCKET_PATH: '/b/t.sock', XDG_RUNTIME_DIR: '/x' }, ['/x'], '/b/t.sock'],
    [
      'nothing of an empty variable',
      undefined,
      { TAY_SOCKET_PATH: '', XDG_RUNTIME_DIR: '/x' },
      ['/x'],
      '/x/tay/tay.sock',
    ],
    ['XDG before TMPDIR', undefined, { XDG_RUNTIME_DIR: '/x', TMPDIR: '/y' }, ['/x', '/y'], '/x/tay/tay.sock'],
    ['TMPDIR when XDG is unusable', undefined, { XDG_RUNTIME_DIR: '/x', TMPDIR: '/y' }, ['/y'], '/y/tay-1000/tay.sock'],
    [
      'TMPDIR when XDG is too long',
      undefined,
      { XDG_RUNTIME_DIR: long, TMPDIR: '/y' },
      [long, '/y'],
      '/y/tay-1000/tay.sock',
    ],
    ['/tmp at last', undefined, {}, ['/tmp'], '/tmp/tay-1000/tay.sock'],
  ] as const)('takes %s', (_name, explicit, env, usable, expected) => {
    expect(resolveSocketPath(explicit, env, host(usable))).toBe(expected);
  });

  it('takes the system socket when its directory exists', () => {
    expect(resolveSocketPath(undefined, { XDG_RUNTIME_DIR: '/x' }, host(['/x'], true))).toBe('/run/tay/tay.sock');
  });

  it.each([
    ['relative', 'run/t.sock'],
    ['too long', long],
    ['with a NUL', '/a\0b'],
    ['too long in bytes', `/${'ä'.repeat(50)}`],
    ['half a surrogate', '/a\ud800'],
  ])('refuses a path that is %s, explicit or from the environment', (_name, path) => {
    expect(() => resolveSocketPath(path, {}, host(['/tmp']))).toThrow(
      expect.objectContaining({ code: 'invalid_socket_path' }),
    );
    expect(() => resolveSocketPath(undefined, { TAY_SOCKET_PATH: path }, host(['/tmp']))).toThrow(
      expect.objectContaining({ code: 'invalid_socket_path' }),
    );
  });

  it('says so when there is no place at all', () => {
    expect(() => resolveSocketPath(undefined, {}, host([]))).toThrow(/--socket/);
  });
});
