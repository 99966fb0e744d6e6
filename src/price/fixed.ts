import { toAtomic, USDC } from './amount.js';
import type { Price, PriceKind } from './price.js';

/** `mode: fixed`: every call costs `amount`. */
export const fixed: PriceKind = {
  keys: ['amount'],
  read({ amount }) {
    try {
      const price = { asset: USDC, atomic: toAtomic(amount) };
      return { most: price, least: price, needsBody: false, quote };
    } catch (error) {
      throw new Error(`amount ${(error as Error).message}`, { cause: error });
    }
  },
};

function quote(this: Price): Price['most'] {
  return this.most;
}
