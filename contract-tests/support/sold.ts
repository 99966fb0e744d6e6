import type { Contract, PricedOperation } from '../../src/contract/contract.js';
import { loadContract } from '../../src/contract/parse-contract.js';

/** The operations and prices of this repository today. Tests of a running server take their prices from here. */
export const SOLD = loadContract(new URL('../../../openapi.yaml', import.meta.url));

/**
 * The operations and prices of version 1.0.0: a contract that does not change. Tests that hold for any contract use it,
 * so that they don't change with the shop.
 */
export const RELEASED = loadContract(
  new URL('../../../contract-tests/released/openapi-1.0.0.yaml', import.meta.url),
);

export function operationIn({ paid }: Contract, id: string): PricedOperation {
  const found = paid.find(operation => operation.id === id);
  if (!found) throw new Error(`The contract has no paid operation ${id}`);
  return found;
}

/** Today's price of an operation in atomic units. */
export const priceOf = (id: string): bigint => operationIn(SOLD, id).price.atomic;

/** Today's price of an operation in USDC, as the contract has it. */
export const usdcOf = (id: string): string => operationIn(SOLD, id).price.amount;
