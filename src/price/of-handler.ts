import { toAtomic, USDC, type Amount } from './amount.js';
import { boundsOf } from './bounds.js';
import { withDeadline } from '../net/deadline.js';
import type { Asked, OwnPrice, PriceKind } from './price.js';

const DEADLINE_MS = 1_000;

/** `mode: handler`: the handler's function `price` returns the price, from `min` to `max`. */
export const ofHandler: PriceKind = {
  keys: ['min', 'max'],
  read: xPrice => ({
    ...boundsOf(xPrice),
    needsBody: true,
    terms: 'depends on the call; the 402 of a call shows its price',
    ofHandler: true,
    quote,
  }),
};

/** The function gets a copy, so that it can't change the call. */
async function quote(asked: Asked, own?: OwnPrice): Promise<Amount> {
  if (!own) throw new Error('there is no handler with a function price');
  const said = await withDeadline(DEADLINE_MS, new AbortController().signal, async () =>
    own(structuredClone(asked)),
  );
  return { asset: USDC, atomic: toAtomic(said) };
}
