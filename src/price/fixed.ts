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
      const mended = typeof amount === 'string' ? '' : `: amount: '${inText(amount)}'`;
      throw new Error(`amount ${(error as Error).message}${mended}`, { cause: error });
    }
  },
};

/** The number as the string that the seller probably meant, if it can be a price. */
function inText(amount: unknown): string {
  const text = String(amount);
  return typeof amount === 'number' && /^\d+(?:\.\d{1,6})?$/.test(text) ? text : '0.01';
}

function quote(this: Price): Price['most'] {
  return this.most;
}
