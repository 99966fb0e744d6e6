import { LRUCache } from 'lru-cache';
import { toDecimal } from '../price/amount.js';
import type { Asked } from '../price/price.js';
import type { PricedOperation } from './read-operation.js';

/** How many prices of an operation are kept, so that what is computed once for an operation is not computed for every call. */
const MAX_PRICES = 256;

const kept = new WeakMap<PricedOperation, LRUCache<bigint, PricedOperation>>();

/**
 * The operation at the price of one call, whose body is valid.
 * @throws Error if its price is not from the least to the most that it says
 */
export function quoted(operation: PricedOperation, asked: Asked): PricedOperation {
  const { pricing, price } = operation;
  const { atomic } = pricing.quote(asked);
  if (atomic < pricing.least.atomic || atomic > pricing.most.atomic)
    throw new Error(`the price of ${operation.id} is beyond its bounds: ${toDecimal(atomic)}`);
  if (atomic === price.atomic) return operation;
  let known = kept.get(operation);
  if (!known) kept.set(operation, (known = new LRUCache<bigint, PricedOperation>({ max: MAX_PRICES })));
  let found = known.get(atomic);
  if (!found) {
    found = { ...operation, price: { ...price, amount: toDecimal(atomic), atomic } };
    known.set(atomic, found);
  }
  return found;
}
