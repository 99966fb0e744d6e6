import { toDecimal, type Amount } from './amount.js';
import { amountAt, boundsOf } from './bounds.js';
import {
  exact,
  isAtMost,
  isMeasure,
  MEASURES,
  unmeasured,
  type Exact,
  type Measure,
  type MeasureName,
} from './measure.js';
import type { Asked, Price, PriceKind, ValueAt } from './price.js';

type Keys = Readonly<Record<string, unknown>>;

/** How a price is calculated from a number, and how it is described. */
type Rule = { least: Amount; most: Amount; words: (unit: string) => string; costs: (size: Exact) => Amount };

const MAX_STEPS = 100;
const STEPS = "steps: [{ upTo: 1000, amount: '0.01' }, { amount: '0.03' }]";
const PER = "per: { amount: '0.001', units: 1000 }, with min and max";

/** `mode: tiered`: the price depends on one value of the call, in steps or per unit. A call without that value costs the maximum. */
export const tiered: PriceKind = {
  keys: ['by', 'measure', 'steps', 'per', 'min', 'max'],
  read(xPrice, valueAt): Price {
    const steps = stepsOf(xPrice.by);
    const { measure } = xPrice;
    if (!isMeasure(measure)) throw new Error(`measure must be one of ${Object.keys(MEASURES).join(', ')}`);
    const bytes = valueAt ? described(steps, measure, valueAt) : false;
    const { least, most, words, costs } = ruleOf(xPrice);
    const measured: Measure = MEASURES[measure];
    const quote = (asked: Asked): Amount => {
      const size = measured.of(valueOf(asked, steps), bytes);
      return size ? costs(size) : most;
    };
    const terms = `by ${measure === 'value' ? '' : `the ${measure} of `}${String(xPrice.by)}: ${words(measured.unit)}`;
    return { least, most, needsBody: true, terms, quote };
  },
};

/** The steps of a JSON pointer (RFC 6901). @throws Error */
function stepsOf(by: unknown): string[] {
  const known = typeof by === 'string' && /^\/(params\/|query\/|headers\/|body(\/|$))/.test(by);
  if (!known || /~(?![01])/.test(by))
    throw new Error(
      'by must be a JSON pointer to a value of the call: /body, /body/…, /query/…, /params/… (of the path) or /headers/…',
    );
  return by
    .slice(1)
    .split('/')
    .map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Whether the value's text encodes bytes. @throws Error if the contract has no such value */
function described(steps: readonly string[], measure: MeasureName, valueAt: ValueAt): boolean {
  const value = valueAt(steps);
  if (!value) throw new Error(`by points to a value that no call has: /${steps.join('/')}`);
  const wrong = unmeasured(measure, value);
  if (wrong !== undefined) throw new Error(wrong);
  return value.bytes;
}

function valueOf(asked: Asked, steps: readonly string[]): unknown {
  return steps.reduce<unknown>(
    (value, step) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, step)
        ? (value as Keys)[step]
        : undefined,
    asked,
  );
}

function ruleOf(xPrice: Keys): Rule {
  const { steps, per, min, max } = xPrice;
  if ((steps === undefined) === (per === undefined))
    throw new Error(`exactly one of steps and per must be set: ${STEPS}; or ${PER}`);
  if (per !== undefined) return byTheUnit(per, xPrice);
  if (min !== undefined || max !== undefined) throw new Error('min and max belong to per: remove them');
  return inSteps(steps);
}

type Step = { upTo: Exact | undefined; shown: string; amount: Amount };

function inSteps(steps: unknown): Rule {
  if (!Array.isArray(steps) || steps.length === 0 || steps.length > MAX_STEPS)
    throw new Error(`steps must be a list of 1 to ${MAX_STEPS}: ${STEPS}`);
  const all = steps.map((each, at) => stepOf(each, at, at === steps.length - 1));
  for (const [at, { upTo }] of all.entries()) {
    const before = all[at - 1]?.upTo;
    if (upTo && before && isAtMost(upTo, before))
      throw new Error(`steps.${at}.upTo must be greater than upTo of the step before it`);
  }
  const amounts = all.map(({ amount }) => amount).sort((a, b) => (a.atomic < b.atomic ? -1 : 1));
  const [least, most] = [amounts[0], amounts.at(-1)];
  if (!least || !most) throw new Error('steps must not be empty');
  return {
    ...{ least, most },
    words: unit =>
      all
        .map(({ shown, amount }, at) => {
          const upTo = shown === '' ? (at === 0 ? '' : ' beyond') : ` up to ${shown}${unit}`;
          return `${toDecimal(amount.atomic)} USDC${upTo}`;
        })
        .join(', '),
    costs: size => all.find(({ upTo }) => upTo && isAtMost(size, upTo))?.amount ?? all.at(-1)?.amount ?? most,
  };
}

function stepOf(step: unknown, at: number, last: boolean): Step {
  const { upTo, amount, ...others } = objectAt(`steps.${at}`, step);
  const [other] = Object.keys(others);
  if (other !== undefined)
    throw new Error(`steps.${at} has an unknown key '${other}': only upTo and amount are allowed`);
  const cost = amountAt(`steps.${at}.amount`, amount);
  if (last) {
    if (upTo !== undefined)
      throw new Error(
        `steps.${at}.upTo must be absent: the last step has no end, so that every call has a price`,
      );
    return { upTo, shown: '', amount: cost };
  }
  const end = typeof upTo === 'number' && upTo >= 0 ? exact(upTo) : undefined;
  if (!end) throw new Error(`steps.${at}.upTo must be a number`);
  return { upTo: end, shown: String(upTo), amount: cost };
}

/** Rounded up to a unit of the asset, which is a millionth of a dollar. */
function byTheUnit(per: unknown, xPrice: Keys): Rule {
  const { amount, units, ...others } = objectAt('per', per);
  const [other] = Object.keys(others);
  if (other !== undefined)
    throw new Error(`per has an unknown key '${other}': only amount and units are allowed`);
  const cost = amountAt('per.amount', amount);
  if (typeof units !== 'number' || !Number.isSafeInteger(units) || units < 1)
    throw new Error('per.units must be a whole number of at least 1');
  const { least, most } = boundsOf(xPrice);
  const atLeast = (atomic: bigint): bigint => (atomic < least.atomic ? least.atomic : atomic);
  return {
    ...{ least, most },
    words: unit =>
      `${toDecimal(cost.atomic)} USDC per ${units}${unit}, at least ${toDecimal(least.atomic)} and at most ${toDecimal(most.atomic)}`,
    costs: size => {
      const divisor = size.scale * BigInt(units);
      const atomic = atLeast((size.units * cost.atomic + divisor - 1n) / divisor);
      return { ...cost, atomic: atomic > most.atomic ? most.atomic : atomic };
    },
  };
}

function objectAt(key: string, value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error(`${key} must be an object`);
  return value as Record<string, unknown>;
}
