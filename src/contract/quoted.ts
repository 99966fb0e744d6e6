import { LRUCache } from 'lru-cache';
import { toDecimal } from '../price/amount.js';
import type { Asked, OwnPrice } from '../price/price.js';
import type { PricedOperation } from './read-operation.js';

/** How many prices of an operation are cached, together with everything that depends on the price. */
const MAX_PRICES = 256;

const kept = new WeakMap<PricedOperation, LRUCache<bigint, PricedOperation>>();

/**
 * The operation with the price that one call, whose body must be valid, has to pay.
 * @param own the handler's function that computes the price
 * @throws Error if the price is outside the declared range
 */
export async function quoted(
  operation: PricedOperation,
  asked: Asked,
  own?: OwnPrice,
): Promise<PricedOperation> {
  const { pricing } = operation;
  const { atomic } = await pricing.quote(asked, own);
  if (atomic < pricing.least.atomic || atomic > pricing.most.atomic)
    throw new Error(`the price of ${operation.id} is outside its range: ${toDecimal(atomic)}`);
  return atPrice(operation, atomic);
}

/** The operation at a given price. While it is cached, the same price gives the same object. */
export function atPrice(operation: PricedOperation, atomic: bigint): PricedOperation {
  const { price } = operation;
  if (atomic === price.atomic && price.shown === shownAs(atomic)) return operation;
  let known = kept.get(operation);
  if (!known) kept.set(operation, (known = new LRUCache<bigint, PricedOperation>({ max: MAX_PRICES })));
  let found = known.get(atomic);
  if (!found) {
    found = { ...operation, price: { ...price, amount: toDecimal(atomic), atomic, shown: shownAs(atomic) } };
    known.set(atomic, found);
  }
  return found;
}

const shownAs = (atomic: bigint): string => `${toDecimal(atomic)} USDC`;
