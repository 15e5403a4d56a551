/**
 * Resolves the files an argv names against the session directory and keeps account of them: what is read, what is written, that no
 * symbolic link, FIFO, device or second hard link is involved, and that nothing is both input and output.
 *
 * Order: every name is judged by path-rules first; then it is looked up; `overlap` is asked once, when all names are known.
 */
import { globPattern, isTemplate, numberPattern, templateSource } from './name-patterns.js';
import { extensionOf, foldedPath, nameOf, normalPath, parentOf, pathProblem } from './path-rules.js';
import type { FileFacts, SessionFiles } from './session-files.js';
import { isTagged, playlistKind, playlistProblem, SCRIPT_EXTENSIONS, SNIFF_BYTES } from './sniff.js';
import type { Problem } from './verdict.js';

type Written = { path: string; pattern: RegExp | undefined; numbered: boolean };

/** Extensions ffmpeg takes for numbered pictures. */
const PICTURE =
  /^(png|jpe?g|jpe|jfif|bmp|dpx|exr|tiff?|tga|webp|ppm|pgm|pbm|pam|pfm|phm|gif|jls|j2k|j2c|jp2|jpx|jxl|qoi|sgi|ras|xwd|xbm|xpm|pcx|psd|dds|hdr|avif|pix|cin|ljpg|sun|im1|im8|im24|rgb|yuv|y|raw|svg|svgz|mng|ico|wbmp|apng|jps|mpo|pns|mpg[124]-img|ptx|pcc|pcd|jpc|im32|yuv10|cri|pgmyuv|sunras|rs|gem|img|ximg|timg|vbn|jxs|fits|xface)$/;

const SPECIAL: Readonly<Record<'symlink' | 'other', Problem>> = {
  symlink: { rule: 'path.symlink', message: 'symbolic links are not followed; stage the file itself' },
  other: { rule: 'path.special', message: 'it is a FIFO, socket or device; only regular files are allowed' },
};

const PLANES: Problem = {
  rule: 'path.planes',
  message:
    'pictures named ".y" come in several files (.y, .u, .v) that ffmpeg finds by itself; use .yuv with -f rawvideo',
};

const isPlanes = (path: string): boolean => extensionOf(path) === 'y';

function missing(path: string): Problem {
  return { rule: 'path.missing', message: `"${path}" does not exist in the session; stage it or produce it first` };
}

/** The account of one argv's files. */
export class SessionPaths {
  readonly #files: SessionFiles;
  readonly #read = new Map<string, string | undefined>();
  readonly #written: Written[] = [];
  readonly #made: RegExp[] = [];
  #temporaries = false;
  readonly #folders = new Set<string>();

  constructor(files: SessionFiles) {
    this.#files = files;
  }

  /** Session paths that are read, in the order they were named. */
  get inputs(): string[] {
    return [...this.#read.keys()];
  }

  /** Session paths (or patterns) that are written. */
  get outputs(): string[] {
    return this.#written.map((one) => one.path);
  }

  /** Folders of outputs that do not exist yet. */
  get missingFolders(): string[] {
    return [...this.#folders];
  }

  /** Names in a folder of the session. */
  names(folder: string): string[] {
    return this.#files.names(folder);
  }

  /** An existing regular file. `media`: its content may not be a playlist either. */
  input(path: string, use: 'data' | 'media'): Problem | undefined {
    const problem = pathProblem(path);
    if (problem !== undefined) return problem;
    const normal = normalPath(path);
    const facts = this.#files.facts(normal);
    const wrong = notAFile(facts, path);
    if (wrong !== undefined) return wrong;
    if (facts.kind === 'file') this.#read.set(normal, facts.id);
    if (isPlanes(normal)) return PLANES;
    return use === 'media' ? this.#sniff(normal) : undefined;
  }

  #sniff(normal: string): Problem | undefined {
    if (SCRIPT_EXTENSIONS.has(extensionOf(normal))) return playlistProblem(normal, 'a script or drawing');
    const first = this.#files.head(normal, 4_096);
    if (first === undefined) return missing(normal);
    const enough = first.whole || (first.bytes.includes('\0') && !isTagged(first.bytes));
    const head = enough ? first : this.#files.head(normal, SNIFF_BYTES);
    const kind = playlistKind((head ?? first).bytes);
    return kind === undefined ? undefined : playlistProblem(normal, kind);
  }

  /** An existing regular file, read whole as text of at most `maxBytes` (one character per byte). */
  content(path: string, maxBytes: number): { ok: true; bytes: string } | { ok: false; problem: Problem } {
    const problem = this.input(path, 'data');
    if (problem !== undefined) return { ok: false, problem };
    const head = this.#files.head(normalPath(path), maxBytes);
    if (head === undefined) return { ok: false, problem: missing(path) };
    if (!head.whole)
      return { ok: false, problem: { rule: 'content.long', message: `"${path}" may have ${maxBytes} bytes here` } };
    return { ok: true, bytes: head.bytes };
  }

  /** An existing folder without symbolic links or special files in it. */
  folder(path: string): Problem | undefined {
    const problem = pathProblem(path);
    if (problem !== undefined) return problem;
    const normal = normalPath(path);
    const facts = this.#files.facts(normal);
    if (facts.kind === 'absent') return missing(path);
    if (facts.kind === 'symlink' || facts.kind === 'other') return SPECIAL[facts.kind];
    if (facts.kind === 'file') return { rule: 'path.kind', message: 'a folder is expected here' };
    return this.#plainFolder(normal);
  }

  /**
   * An input that may be a numbered sequence (`frame%04d.png`) or, with `glob`, a pattern of `*` and `?` in its last part. Every
   * file that matches must be a regular file and at least one must exist. Pictures of a sequence are never probed for another format, so
   * their content is not looked at.
   */
  sequence(path: string, glob: boolean): Problem | undefined {
    const problem = pathProblem(path);
    if (problem !== undefined) return problem;
    const normal = normalPath(path);
    const folder = parentOf(normal);
    if (glob ? /[*?[\]{}%]/.test(folder) : /%/.test(folder))
      return { rule: 'pattern.folder', message: 'a pattern may stand only in the last part of a path' };
    const name = nameOf(normal);
    if (glob && /[[\]{}]/.test(name))
      return { rule: 'pattern.glob', message: 'only "*" and "?" are allowed in a glob pattern' };
    const pattern = glob ? globPattern(name) : numberPattern(name);
    if (pattern === undefined)
      return {
        rule: 'pattern.number',
        message: 'a sequence needs exactly one %d or %0Nd in the last part of its name',
      };
    const matches = this.#files.names(folder).filter((entry) => pattern.test(entry));
    if (matches.length === 0) return missing(path);
    for (const entry of matches) {
      const wrong = this.input(folder === '' ? entry : `${folder}/${entry}`, 'data');
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  }

  /** True when ffmpeg would take the input's name for a picture sequence or a glob rather than for one file. */
  looksLikeSequence(path: string): boolean {
    return path.includes('%') && PICTURE.test(extensionOf(path));
  }

  /**
   * A file that is written. `pattern`: names derived from it (numbers, variants) are written instead. `numbered`: the program gives
   * every stream a number of its own, so two outputs may have the same prefix.
   */
  output(path: string, pattern?: RegExp, numbered = false): Problem | undefined {
    const problem = pathProblem(path);
    if (problem !== undefined) return problem;
    const normal = normalPath(path);
    if (normal === '') return { rule: 'path.kind', message: 'a file name is expected here' };
    if (isPlanes(normal)) return PLANES;
    const folder = parentOf(normal);
    const parent = this.#files.facts(folder);
    if (parent.kind === 'symlink' || parent.kind === 'other') return SPECIAL[parent.kind];
    if (parent.kind === 'file') return { rule: 'path.kind', message: `"${folder}" is a file, not a folder` };
    if (parent.kind === 'absent') {
      const blocked = this.#blockedFolder(folder);
      if (blocked !== undefined) return blocked;
      // A folder with a template in its name is made by the muxer, once it knows the name.
      const given = folder.split('/');
      const template = pattern === undefined ? -1 : given.findIndex(isTemplate);
      const known = (template < 0 ? given : given.slice(0, template)).join('/');
      if (known !== '' && this.#files.facts(known).kind === 'absent') this.#folders.add(known);
    }
    if (pattern === undefined) {
      const wrong = notWritable(this.#files.facts(normal), path) ?? this.#temporaryProblem(normal);
      if (wrong !== undefined) return wrong;
    } else {
      const wrong = this.#plainFolders('', folder === '' ? [] : folder.split('/'));
      if (wrong !== undefined) return wrong;
    }
    this.#written.push({ path: normal, pattern, numbered });
    return undefined;
  }

  /** Muxers that replace a file at once write NAME.tmp first. */
  #temporaryProblem(normal: string): Problem | undefined {
    const problem = linkProblem(this.#files.facts(`${normal}.tmp`));
    return problem && { rule: problem.rule, message: `"${normal}.tmp" is in the way: ${problem.message}` };
  }

  /** The folder of an output beside which the muxer makes names of its own: it may hold regular files only. */
  beside(path: string): Problem | undefined {
    return this.#plainFolder(parentOf(normalPath(path)));
  }

  /** Names (folded session paths) that a muxer makes without being told: nothing that is read may be called so. */
  made(pattern: RegExp): void {
    this.#made.push(pattern);
  }

  /** A muxer of this argv writes NAME.tmp first, for every name: nothing that is read may be called so either. */
  withTemporaries(): void {
    this.#temporaries = true;
  }

  /** A missing folder must be missing altogether: no file or link stands where one of its parents would be. */
  #blockedFolder(folder: string): Problem | undefined {
    const parts = folder.split('/');
    for (let count = 1; count < parts.length; count++) {
      const facts = this.#files.facts(parts.slice(0, count).join('/'));
      if (facts.kind === 'symlink' || facts.kind === 'other') return SPECIAL[facts.kind];
      if (facts.kind === 'file')
        return { rule: 'path.kind', message: `"${parts.slice(0, count).join('/')}" is a file, not a folder` };
    }
    return undefined;
  }

  /** Every folder that a template for folders can mean: no link may stand for one of them, and the last holds regular files only. */
  #plainFolders(at: string, rest: readonly string[]): Problem | undefined {
    const [part, ...further] = rest;
    if (part === undefined) return this.#plainFolder(at);
    const pattern = isTemplate(part) ? new RegExp(`^${templateSource(foldedPath(part))}$`) : undefined;
    const meant =
      pattern === undefined ? [part] : this.#files.names(at).filter((name) => pattern.test(foldedPath(name)));
    for (const name of meant) {
      const path = at === '' ? name : `${at}/${name}`;
      const facts = this.#files.facts(path);
      if (facts.kind === 'symlink' || facts.kind === 'other')
        return { rule: SPECIAL[facts.kind].rule, message: `"${path}": ${SPECIAL[facts.kind].message}` };
      const wrong = facts.kind === 'directory' ? this.#plainFolders(path, further) : undefined;
      if (wrong !== undefined) return wrong;
    }
    return undefined;
  }

  #plainFolder(folder: string): Problem | undefined {
    for (const entry of this.#files.names(folder)) {
      const problem = linkProblem(this.#files.facts(folder === '' ? entry : `${folder}/${entry}`));
      if (problem !== undefined) {
        return {
          rule: problem.rule,
          message: `the folder holds "${entry}": ${problem.message}; names are derived from a pattern here, so the folder must hold plain files only`,
        };
      }
    }
    return undefined;
  }

  /** Something that is both read and written, or written twice, in one argv. */
  overlap(): (Problem & { path: string }) | undefined {
    const readNames = new Set([...this.#read.keys()].map(foldedPath));
    if (this.#temporaries) for (const name of [...readNames]) readNames.add(name.replace(/\.tmp$/, ''));
    const readIds = new Set([...this.#read.values()].filter((id) => id !== undefined));
    const seen = new Set<string>();
    for (const { path, pattern, numbered } of this.#written) {
      const folded = foldedPath(path);
      const facts = pattern === undefined ? this.#files.facts(path) : undefined;
      const same =
        readNames.has(folded) ||
        (facts?.kind === 'file' && readIds.has(facts.id)) ||
        (pattern !== undefined && [...readNames].some((name) => pattern.test(name)));
      if (same)
        return {
          path,
          rule: 'output.is-input',
          message: `"${path}" would overwrite a file that is being read (names are compared without regard to case); write to another name`,
        };
      if (numbered) continue;
      if (seen.has(folded)) return { path, rule: 'output.twice', message: `"${path}" would be written twice` };
      seen.add(folded);
    }
    const made = [...this.#read.keys()].find((path) => {
      const name = foldedPath(path);
      const names = this.#temporaries ? [name, name.replace(/\.tmp$/, '')] : [name];
      return names.some((one) => this.#made.some((pattern) => pattern.test(one)));
    });
    if (made !== undefined)
      return {
        path: made,
        rule: 'output.is-input',
        message: `"${made}" is being read, and the format of an output writes a file of that name by itself; use another name or folder`,
      };
    return undefined;
  }
}

function notAFile(facts: FileFacts, path: string): Problem | undefined {
  switch (facts.kind) {
    case 'absent':
      return missing(path);
    case 'symlink':
    case 'other':
      return SPECIAL[facts.kind];
    case 'directory':
      return { rule: 'path.kind', message: 'it is a folder; a file is expected' };
    case 'file':
      return linkProblem(facts);
  }
}

/** What a name may lead to besides itself: a link of either kind, or a special file. */
function linkProblem(facts: FileFacts): Problem | undefined {
  if (facts.kind === 'symlink' || facts.kind === 'other') return SPECIAL[facts.kind];
  if (facts.kind !== 'file' || facts.links <= 1) return undefined;
  return {
    rule: 'path.hardlink',
    message: 'the file has more than one hard link, so it may belong to something outside the session',
  };
}

function notWritable(facts: FileFacts, path: string): Problem | undefined {
  return facts.kind === 'absent' ? undefined : notAFile(facts, path);
}
