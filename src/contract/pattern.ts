import { RegExpParser, type AST } from '@eslint-community/regexpp';
import { RE2JS, RE2JSException } from 're2js';
import { hasFewSteps } from './pattern-steps.js';
import { NotRegular, patternText } from './pattern-text.js';

/** A `pattern` that is no regular expression, or one that some text would take very long to be matched against. */
export class PatternFault extends Error {}

/** What a text is matched with. */
export type Matcher = { test(text: string): boolean; toString(): string };

const MAX_LENGTH = 10_000;
const MAX_SHOWN = 100;
/** The dialect that Node 20 knows. */
const parser = new RegExpParser({ ecmaVersion: 2023 });

/** @throws PatternFault */
export function parsedPattern(pattern: string): AST.Pattern {
  if (pattern.length > MAX_LENGTH) throw faultOf(pattern, `is longer than ${MAX_LENGTH} characters`);
  try {
    return parser.parsePattern(pattern, 0, pattern.length, { unicode: true });
  } catch (error) {
    if (error instanceof RangeError) throw faultOf(pattern, 'nests too deep to be read');
    const { message } = error as Error;
    throw faultOf(pattern, `is no regular expression with the flag u: ${message.split(': ').at(-1)}`);
  }
}

/**
 * Compiles the pattern of a schema, for any text that a stranger sends. JavaScript's own engine goes back and tries again, for some
 * patterns and texts so often that it never ends (`^(a+)+$`), and everything else stands still meanwhile; so it gets only what is
 * certain to need few steps. Everything else goes to RE2, whose time is linear in the length of the text.
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
        `can't be matched in a time that grows only as the text does, because ${error.message}: a text that a buyer sends could stop the server. Write it without that, or leave it out`,
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

/** For ajv. */
export const boundedRegExp = Object.assign((pattern: string): Matcher => matcherOf(pattern), {
  code: 'boundedRegExp',
});
