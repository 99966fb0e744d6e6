import { toAtomic, toDecimal, USDC, type Amount } from './amount.js';

/** @throws Error whose message begins with the name of the key */
export function amountAt(key: string, value: unknown): Amount {
  try {
    return { asset: USDC, atomic: toAtomic(value) };
  } catch (error) {
    throw new Error(`${key} ${(error as Error).message}`, { cause: error });
  }
}

/** Reads `min` and `max` of a price. @throws Error */
export function boundsOf({ min, max }: Readonly<Record<string, unknown>>): { least: Amount; most: Amount } {
  const [least, most] = [amountAt('min', min), amountAt('max', max)];
  if (least.atomic > most.atomic)
    throw new Error(`max ${toDecimal(most.atomic)} must not be less than min ${toDecimal(least.atomic)}`);
  return { least, most };
}
