import type { PaymentFlow } from '../contract/contract.js';

/** When the buyer's money moves, in a few words. */
export function whenCharged(flow: PaymentFlow): string {
  return flow === 'upfront' ? 'paid before the work' : 'charged only for an answer';
}
