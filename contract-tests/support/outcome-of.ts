import type { Answer } from '../../src/sale/outcome.js';

/** The outcome of a charge whose work gave this answer: sold if its status is 200. Ignores whether the answer was written. */
export function outcomeOf(answer: Answer): object {
  if (answer.status !== 200) return { kind: 'failed', answer };
  return { kind: 'sold', answer, sale: { written: () => {}, lost: async () => {} } };
}
