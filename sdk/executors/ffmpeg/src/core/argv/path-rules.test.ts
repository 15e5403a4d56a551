import { posix } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foldedPath, normalPath, pathProblem } from './path-rules.js';

describe('a session path', () => {
  it.each([
    'in.mp4',
    './in.mp4',
    'a/b/c.mp4',
    'v1.2..final.mp4',
    'take-1--final.mp4',
    'my clip (final) v2.mp4',
    '[draft] {x}.mp4',
    'a&b;c$d`e`.mp4',
    '#1 @home!.mp4',
    'готово.mp4',
    'Paris, France.mp4',
    '100%.mp4',
    'a//b.mp4',
    '.hidden',
    '…',
    'frame%04d.png',
    'a~b',
  ])('may be %j', (path) => {
    expect(pathProblem(path)).toBeUndefined();
  });

  it.each([
    ['', 'path.empty'],
    ['/etc/passwd', 'path.absolute'],
    ['../x', 'path.parent'],
    ['a/../x', 'path.parent'],
    ['.//..///x', 'path.parent'],
    ['http://x', 'path.scheme'],
    ['a:b', 'path.scheme'],
    ['clip 10:30.mp4', 'path.colon'],
    ['C:\\x', 'path.scheme'],
    ['\\\\server\\x', 'path.backslash'],
    ['~/x', 'path.home'],
    ['-x', 'path.dash'],
    ['subfile,,x', 'path.scheme'],
    ['a\nb', 'path.invisible'],
    ['a\u202eb', 'path.invisible'],
    ['NUL', 'path.device'],
    ['a/com1.txt', 'path.device'],
    ['a./b', 'path.trailing'],
    ['b ', 'path.trailing'],
    ['．．/x', 'path.lookalike'],
    ['／etc', 'path.lookalike'],
    ['‥/x', 'path.lookalike'],
    ['%2e%2e/x', 'path.encoded'],
    ['$HOME/x', 'path.variable'],
    ['in\ud800.mp4', 'path.unicode'],
    ['x'.repeat(256), 'path.long'],
  ])('may not be %j (%s)', (path, rule) => {
    expect(pathProblem(path)?.rule).toBe(rule);
  });

  it('stays below the session, whatever it is made of', () => {
    const part = fc.oneof(
      fc.string(),
      fc.constantFrom('..', '.', '', '~', 'a', '\\', ':', '%2e%2e', '．．', '/', 'NUL'),
    );
    fc.assert(
      fc.property(
        fc.array(part, { minLength: 1 }).map((parts) => parts.join('/')),
        (path) => {
          if (pathProblem(path) !== undefined) return;
          expect(posix.resolve('/session', path).startsWith('/session/') || normalPath(path) === '').toBe(true);
          expect(posix.resolve('/session', path.normalize('NFKC')).startsWith('/session')).toBe(true);
          expect(posix.join('/', normalPath(path))).toBe(posix.resolve('/', path));
        },
      ),
      { numRuns: 500 },
    );
  });

  it('is compared without regard to case and composition', () => {
    expect(foldedPath('./A/É.MP4')).toBe(foldedPath('a//é.mp4'));
  });
});
