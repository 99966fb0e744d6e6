import type { AST } from '@eslint-community/regexpp';
import { matcherOf, parsedPattern, PatternFault } from '../pattern.js';

/** The limits of a string's length, in characters. */
export type Lengths = { minLength?: unknown; maxLength?: unknown };

/** How many repetitions to add to the minimum of a repeated part. They are tried in this order; the first one that fits is used. */
const MORE = [...Array(40).keys(), 64, 128, 256, 512];
const MOST = 1_000;
/** In a sample string, the first of these characters that a class contains represents the class. */
const CHARACTERS = [...'a1A-_.,:;/+*=@#$%&!?~\'"`^|<>()[]{}\\ \t\n0éЖ中😀'];

/** A string that matches a pattern, if one is easy to construct. */
export function textMatching(pattern: string, { minLength, maxLength }: Lengths): string | undefined {
  try {
    const parsed = parsedPattern(pattern);
    const matcher = matcherOf(pattern);
    const least = typeof minLength === 'number' ? minLength : 0;
    const most = Math.min(MOST, typeof maxLength === 'number' ? maxLength : MOST);
    // The first alternative that works.
    for (const alternative of parsed.alternatives)
      for (const more of MORE) {
        const text = ofElements(alternative.elements, more, MOST);
        if (text === undefined || text === '') continue;
        const length = [...text].length;
        if (length >= least && length <= most && matcher.test(text)) return text;
      }
    return undefined;
  } catch (error) {
    if (error instanceof PatternFault) return undefined;
    throw error;
  }
}

/**
 * @param left the maximum length of the string. @returns undefined if the string would be longer, or none was
 * found for an element
 */
function ofElements(elements: readonly AST.Element[], more: number, left: number): string | undefined {
  let made = '';
  for (const element of elements) {
    const part = ofElement(element, more, left - made.length);
    if (part === undefined || made.length + part.length > left) return undefined;
    made += part;
  }
  return made;
}

function ofElement(element: AST.Element, more: number, left: number): string | undefined {
  switch (element.type) {
    case 'Character':
      return String.fromCodePoint(element.value);
    case 'CharacterSet':
    case 'CharacterClass':
    case 'ExpressionCharacterClass': {
      const one = new RegExp(`^${element.raw}$`, 'u');
      return CHARACTERS.find(each => one.test(each));
    }
    case 'Group':
    case 'CapturingGroup': {
      const all = element.alternatives.map(each => ofElements(each.elements, more, left));
      return all.find(each => each !== undefined && each !== '') ?? all.find(each => each !== undefined);
    }
    case 'Quantifier':
      return repeated(element, more, left);
    // Assertions are checked when the string is matched.
    default:
      return '';
  }
}

function repeated({ element, min, max }: AST.Quantifier, more: number, left: number): string | undefined {
  const times = Math.min(min + more, max);
  if (times === 0) return '';
  const part = ofElement(element, more, left);
  return part === undefined || part.length * times > left ? undefined : part.repeat(times);
}
