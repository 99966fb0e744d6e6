import { RegExpParser, type AST } from '@eslint-community/regexpp';
import { RE2JS, RE2JSException } from 're2js';
import { hasFewSteps } from './pattern-steps.js';
import { NotRegular, patternText } from './pattern-text.js';

/** A `pattern` that is not a regular expression, or that takes very long to match some text. */
export class PatternFault extends Error {}

/** A compiled pattern. */
export type Matcher = { test(text: string): boolean; toString(): string };

const MAX_LENGTH = 10_000;
const MAX_SHOWN = 100;
/** The version of ECMAScript that Node.js 20 supports. */
const parser = new RegExpParser({ ecmaVersion: 2023 });

/** @throws PatternFault */
export function parsedPattern(pattern: string): AST.Pattern {
  if (pattern.length > MAX_LENGTH) throw faultOf(pattern, `is longer than ${MAX_LENGTH} characters`);
  try {
    return parser.parsePattern(pattern, 0, pattern.length, { unicode: true });
  } catch (error) {
    if (error instanceof RangeError) throw faultOf(pattern, 'nests too deeply to be read');
    const { message } = error as Error;
    throw faultOf(pattern, `is not a regular expression with the flag u: ${message.split(': ').at(-1)}`);
  }
}

/**
 * Compiles the pattern of a schema so that it is safe for text from strangers. JavaScript's engine backtracks. With some patterns (such as
 * `^(a+)+$`), it practically never ends and blocks the server, so it only gets patterns that certainly need few steps. All others go to
 * RE2, whose time is linear in the length of the text.
 * @throws PatternFault
 */
export function matcherOf(pattern: string): Matcher {
  const parsed = parsedPattern(pattern);
  if (hasFewSteps(parsed)) return new RegExp(pattern, 'u');
  try {
    const compiled = RE2JS.compile(patternText(parsed));
    return { test: text => compiled.test(text), toString: () => pattern };
  } catch (error) {
    if (error instanceof NotRegular)
      throw faultOf(
        pattern,
        `can't be matched in linear time, because ${error.message}: a text from a buyer could block the server. Rewrite the pattern without that, or leave it out`,
      );
    if (error instanceof RE2JSException) throw faultOf(pattern, `can't be used: ${error.message}`);
    throw error;
  }
}

function faultOf(pattern: string, message: string): PatternFault {
  const shown = pattern.length > MAX_SHOWN ? `${pattern.slice(0, MAX_SHOWN)}…` : pattern;
  return new PatternFault(`the pattern ${shown} ${message}`);
}

/** What is wrong with a pattern, if anything. */
export function patternFault(pattern: string): string | undefined {
  try {
    matcherOf(pattern);
    return undefined;
  } catch (error) {
    if (error instanceof PatternFault) return error.message;
    throw error;
  }
}

/** The pattern in the form that ajv calls. */
export const boundedRegExp = Object.assign((pattern: string): Matcher => matcherOf(pattern), {
  code: 'boundedRegExp',
});
