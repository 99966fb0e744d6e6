import type { AST } from '@eslint-community/regexpp';

/** Thrown for a part of a pattern that only a backtracking engine could match; the message describes it. */
export class NotRegular extends Error {}

/** The maximum number of repetitions and characters in a pattern, counted together, because each becomes a state of the automaton. */
const MAX_SIZE = 1_000;
const LAST = 0x10ffff;
const ANYTHING = `[\\x{0}-\\x{${LAST.toString(16)}}]`;

type Range = readonly [from: number, to: number];

const LINE_ENDS: Range[] = [
  [0xa, 0xa],
  [0xd, 0xd],
  [0x2028, 0x2029],
];
/** The characters of \d, \s and \w in ECMAScript. */
const SETS: Record<'digit' | 'space' | 'word', Range[]> = {
  digit: [[0x30, 0x39]],
  word: [
    [0x30, 0x39],
    [0x41, 0x5a],
    [0x5f, 0x5f],
    [0x61, 0x7a],
  ],
  space: [
    [0x9, 0xd],
    [0x20, 0x20],
    [0xa0, 0xa0],
    [0x1680, 0x1680],
    [0x2000, 0x200a],
    [0x2028, 0x2029],
    [0x202f, 0x202f],
    [0x205f, 0x205f],
    [0x3000, 0x3000],
    [0xfeff, 0xfeff],
  ],
};
const ASSERTIONS = { start: '\\A', end: '\\z' };

/**
 * Translates an ECMAScript pattern (with the flag u) into the syntax of RE2, which takes time linear in the length of a text.
 * @throws NotRegular
 */
export function patternText({ alternatives }: AST.Pattern): string {
  const size = sizeOf(alternatives);
  if (size > MAX_SIZE)
    throw new NotRegular(`it repeats too much (at most ${MAX_SIZE} characters are allowed)`);
  return ofAll(alternatives);
}

function sizeOf(alternatives: readonly AST.Alternative[]): number {
  const all = alternatives.flatMap(({ elements }) => elements.map(sizeOfElement));
  return all.reduce((sum, size) => sum + size, 0);
}

function sizeOfElement(element: AST.Element): number {
  if (element.type === 'Quantifier')
    return sizeOfElement(element.element) * Math.max(1, element.max === Infinity ? element.min : element.max);
  return 'alternatives' in element ? sizeOf(element.alternatives) : 1;
}

function ofAll(alternatives: readonly AST.Alternative[]): string {
  return `(?:${alternatives.map(({ elements }) => elements.map(ofElement).join('')).join('|')})`;
}

function ofElement(element: AST.Element): string {
  switch (element.type) {
    case 'Character':
      return character(element.value);
    case 'CharacterSet':
      return element.kind === 'any' ? `[^${ranges(LINE_ENDS)}]` : `[${ofSet(element)}]`;
    case 'CharacterClass':
      return ofClass(element);
    case 'Group':
      if (element.modifiers) throw new NotRegular(`it has modifiers, ${element.raw.slice(0, 20)}`);
      return ofAll(element.alternatives);
    case 'CapturingGroup':
      return ofAll(element.alternatives);
    case 'Quantifier':
      return `(?:${ofElement(element.element)})${counted(element)}`;
    case 'Assertion':
      return ofAssertion(element);
    default:
      throw new NotRegular(`it refers back to what it matched, by ${element.raw.slice(0, 20)}`);
  }
}

function counted({ min, max }: AST.Quantifier): string {
  if (max === Infinity) return min === 0 ? '*' : min === 1 ? '+' : `{${min},}`;
  return `{${min},${max}}`;
}

function ofAssertion(assertion: AST.Assertion): string {
  if (assertion.kind === 'word') return assertion.negate ? '\\B' : '\\b';
  if (assertion.kind === 'start' || assertion.kind === 'end') return ASSERTIONS[assertion.kind];
  const where = assertion.kind === 'lookahead' ? 'ahead' : 'behind';
  throw new NotRegular(`it looks ${where}, by ${assertion.raw.slice(0, 20)}`);
}

function ofClass({ negate, elements }: AST.CharacterClass): string {
  if (elements.length === 0) return negate ? ANYTHING : `[^${ANYTHING.slice(1)}`;
  const all = elements.map(each => {
    if (each.type === 'Character') return character(each.value);
    if (each.type === 'CharacterClassRange')
      return `${character(each.min.value)}-${character(each.max.value)}`;
    if (each.type === 'CharacterSet') return ofSet(each);
    throw new NotRegular(`it has a class within a class, ${each.raw.slice(0, 20)}`);
  });
  return `[${negate ? '^' : ''}${all.join('')}]`;
}

/** A class as part of another class. */
function ofSet(set: Exclude<AST.CharacterSet, AST.AnyCharacterSet>): string {
  if (set.kind !== 'property') return ranges(set.negate ? others(SETS[set.kind]) : SETS[set.kind]);
  // RE2 would read it as the script of the same name, which has fewer characters.
  if (/^(Script_Extensions|scx)$/.test(set.key))
    throw new NotRegular(`it uses the extensions of a script (${set.raw.slice(0, 40)})`);
  return `\\${set.negate ? 'P' : 'p'}{${set.value ?? set.key}}`;
}

function others(all: readonly Range[]): Range[] {
  const starts = [0, ...all.map(([, to]) => to + 1)];
  const ends = [...all.map(([from]) => from - 1), LAST];
  return starts.map((from, index) => [from, ends[index] ?? LAST] as const);
}

function ranges(all: readonly Range[]): string {
  return all.map(([from, to]) => `${character(from)}-${character(to)}`).join('');
}

function character(value: number): string {
  if (value >= 0xd800 && value <= 0xdfff)
    throw new NotRegular('it contains half of a character (a lone surrogate)');
  return `\\x{${value.toString(16)}}`;
}
