import type { AST } from '@eslint-community/regexpp';

/**
 * The worst case of a backtracking engine: the ways to try counted repetitions and alternatives, and the number of unbounded repetitions,
 * each of which multiplies the steps by the length of the text.
 */
type Steps = { ways: number; open: number };

const ONE: Steps = { ways: 1, open: 0 };
const UNBOUNDED: Steps = { ways: Infinity, open: 2 };
/** The maximum number of steps per character, whatever the length of the text. */
const MOST_WAYS = 10_000;
const MOST_WAYS_EACH = 100;

/**
 * Whether a backtracking engine never needs more than a few steps per character of a text. True only for simple cases: repeated characters,
 * at most one unbounded repetition, and no repeated groups that could match in several ways.
 */
export function hasFewSteps({ alternatives }: AST.Pattern): boolean {
  const all = alternatives.map(each => {
    const steps = stepsOfAll(each.elements, isAnchored(each));
    // An unanchored pattern is tried again at each character.
    return isAnchored(each) ? steps : { ...steps, open: steps.open + 1 };
  });
  return areFew(oneOf(all));
}

function areFew({ ways, open }: Steps): boolean {
  return open === 0 ? ways <= MOST_WAYS : open === 1 && ways <= MOST_WAYS_EACH;
}

function isAnchored({ elements: [first] }: AST.Alternative): boolean {
  return first?.type === 'Assertion' && first.kind === 'start';
}

function oneOf(all: readonly Steps[]): Steps {
  return {
    ways: all.reduce((sum, { ways }) => sum + ways, 0),
    open: Math.max(0, ...all.map(({ open }) => open)),
  };
}

/** @param once whether the elements are tried at only one position in the text */
function stepsOfAll(elements: readonly AST.Element[], once: boolean): Steps {
  return elements.reduce((before, element) => {
    const steps = stepsOf(element, once && before.ways === 1 && before.open === 0);
    return { ways: before.ways * steps.ways, open: before.open + steps.open };
  }, ONE);
}

function stepsOf(element: AST.Element, once: boolean): Steps {
  if (element.type === 'Quantifier') return repeated(element, once);
  if (element.type === 'Group' || element.type === 'CapturingGroup')
    return oneOf(element.alternatives.map(each => stepsOfAll(each.elements, once)));
  if (element.type === 'Backreference') return UNBOUNDED;
  if (element.type !== 'Assertion' || !('alternatives' in element)) return ONE;
  // A look-ahead is not retried later, so its steps are added, not multiplied.
  const looked = oneOf(element.alternatives.map(each => stepsOfAll(each.elements, once)));
  return once && areFew(looked) ? ONE : UNBOUNDED;
}

function repeated({ element, min, max }: AST.Quantifier, once: boolean): Steps {
  const each = stepsOf(element, false);
  if (max === 1) return { ways: stepsOf(element, once).ways + 1, open: each.open };
  const isCharacter = ['Character', 'CharacterClass', 'CharacterSet'].includes(element.type);
  if (isCharacter) return max === Infinity ? { ways: 1, open: 1 } : { ways: max - min + 1, open: 0 };
  if (each.open > 0 || max === Infinity) return UNBOUNDED;
  return min === max && each.ways === 1 ? ONE : { ways: (each.ways + 1) ** max, open: 0 };
}
