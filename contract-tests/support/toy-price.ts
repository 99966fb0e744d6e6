import { USDC } from '../../src/price/amount.js';
import type { PriceKind } from '../../src/price/price.js';

const ATOMIC_PER_CHARACTER = 100n;

/** A price that exists only in tests: a fixed amount for each character of `text`. */
export const toyPrice: PriceKind = {
  keys: ['characters'],
  read({ characters }) {
    if (typeof characters !== 'number') throw new Error('characters must be the greatest length of a text');
    const costs = (length: number) => ({ asset: USDC, atomic: BigInt(length) * ATOMIC_PER_CHARACTER });
    return {
      most: costs(characters),
      least: costs(1),
      needsBody: true,
      quote: ({ body }) => costs((body as { text: string }).text.length),
    };
  },
};
