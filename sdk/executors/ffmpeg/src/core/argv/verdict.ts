/**
 * What the validator answers, and how its parts report a problem to each other. A part never throws for bad input: it returns a
 * `Problem`, and the caller that knows which word of argv it came from turns that into a denial.
 */

/** Why something is refused. `rule` is a stable name (see docs/argv-validator.md); `message` is complete and says what would be allowed. */
export type Problem = { rule: string; message: string };

/** A refusal as the op reports it (`argv_not_allowed`, remote specification, "Media session ops and argv validation"). */
export type Denial = {
  verdict: 'deny';
  code: 'argv_not_allowed';
  rule: string;
  /** Position in argv (0-based); -1 when the argv as a whole is meant. */
  index: number;
  /** The word that is refused, shortened to 200 characters. */
  argument: string;
  message: string;
};

const SHOWN_CHARACTERS = 200;

/** Shortens a word for messages and makes control characters visible. */
export function shown(word: string): string {
  const visible = word.replace(
    /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return visible.length > SHOWN_CHARACTERS ? `${visible.slice(0, SHOWN_CHARACTERS)}…` : visible;
}

/** Builds a denial: `<argument>: <message> [rule]`. */
export function denial(problem: Problem, index: number, argument: string): Denial {
  const word = shown(argument);
  const where = index < 0 ? 'argv' : `argv[${index}] "${word}"`;
  return {
    verdict: 'deny',
    code: 'argv_not_allowed',
    rule: problem.rule,
    index,
    argument: word,
    message: `${where}: ${problem.message} (rule ${problem.rule})`,
  };
}
