import { toAtomic, toDecimal } from '../../price/amount.js';
import { readPriceBy, type PriceBy } from '../../price/price-by.js';
import { ImportFault } from './source-document.js';

/** The parts of an operation that a rule can match. */
export type Named = { method: string; path: string; tags: readonly string[]; ids: readonly string[] };

/** `GET /report=0.50`: the price of the operations that a pattern matches. */
export type PriceRule = { pattern: string; amount: string };

/** `GET /report=length of /query/name, 0.001 per 10, at most 0.50`: how the price of matching operations rises with a value in the call. */
export type RisingRule = { pattern: string; by: PriceBy };

const MAX_PATTERN = 500;
const METHOD = /^[a-z]+(?= )/i;

/**
 * Reads a price: `<pattern>=<USD>`.
 * @throws ImportFault
 */
export function readPriceRule(text: string): PriceRule {
  const at = text.lastIndexOf('=');
  const [pattern, amount] = [text.slice(0, at).trim(), text.slice(at + 1).trim()];
  if (at < 1 || pattern === '')
    throw new ImportFault(
      `'${text}' is not a price: state which calls cost how much, for example 'POST /report=0.50', or '*=0.01' for everything.`,
    );
  if (/^0*(\.0*)?$/.test(amount) && amount !== '')
    throw new ImportFault(
      `'${text}': a price must be more than 0. An operation without a price can't be called; x-free-proxy in openapi.yaml makes it free.`,
    );
  try {
    return { pattern: readPattern(pattern), amount: toDecimal(toAtomic(amount)) };
  } catch (error) {
    if (error instanceof ImportFault) throw error;
    throw new ImportFault(`'${text}': the price ${(error as Error).message}`);
  }
}

/**
 * Reads a rule for a rising price: `<pattern>=<rule>`.
 * @throws ImportFault
 */
export function readRisingRule(text: string): RisingRule {
  const at = text.lastIndexOf('=');
  if (at < 1)
    throw new ImportFault(
      `'${text}' does not name the operations whose price rises, as in 'POST /report=length of /body/text, 0.001 per 1000, at most 0.50'.`,
    );
  const by = riseOf(text.slice(at + 1));
  if (by.mode === 'handler')
    throw new ImportFault(
      'A price by handler needs a handler, but imported operations are served by an API: write another rule.',
    );
  return { pattern: readPattern(text.slice(0, at)), by };
}

function riseOf(rule: string): PriceBy {
  try {
    return readPriceBy(rule);
  } catch (error) {
    throw new ImportFault(`--price-by ${(error as Error).message}`);
  }
}

/** @throws ImportFault */
export function readPattern(text: string): string {
  const pattern = text.trim().replace(METHOD, method => method.toUpperCase());
  if (pattern !== '' && pattern.length <= MAX_PATTERN) return pattern;
  throw new ImportFault(`A pattern has 1 to ${MAX_PATTERN} characters: '${text.slice(0, 60)}'.`);
}

/**
 * The rule for an operation: the most specific one, whose pattern has the most characters besides `*`. If several have equally many, the
 * last.
 * @returns undefined if none matches
 */
export function ruleFor<R extends { pattern: string }>(rules: readonly R[], operation: Named): R | undefined {
  let best: { rule: R; letters: number } | undefined;
  for (const rule of rules) {
    const letters = rule.pattern.replaceAll('*', '').length;
    if (letters >= (best?.letters ?? 0) && matches(rule.pattern, operation)) best = { rule, letters };
  }
  return best?.rule;
}

/**
 * Whether a pattern matches the operation's method and path, its path, one of its tags or its operationId. `*` stands for any characters.
 */
export function matches(pattern: string, { method, path, tags, ids }: Named): boolean {
  return [`${method} ${path}`, path, ...tags, ...ids].some(text => fits(pattern, text));
}

/** Backtracks only to the last `*`, so the time is bounded by the product of both lengths. */
function fits(pattern: string, text: string): boolean {
  let [at, star, from] = [0, -1, 0];
  for (let index = 0; index < text.length;) {
    if (pattern[at] === '*') {
      star = at++;
      from = index;
    } else if (pattern[at] === text[index]) {
      at += 1;
      index += 1;
    } else if (star >= 0) {
      at = star + 1;
      index = ++from;
    } else return false;
  }
  return /^\**$/.test(pattern.slice(at));
}
