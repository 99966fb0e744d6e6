import type { PaymentFlow } from '../contract/contract.js';

/** When the buyer's money moves, in a few words. */
export function whenCharged(flow: PaymentFlow): string {
  return flow === 'upfront' ? 'paid before the work' : 'charged only for an answer';
}

/** What each status of a paid call means for the money of its caller. */
export const MEANINGS: readonly [status: string, meaning: string][] = [
  [
    '200',
    'You have the answer, and you paid once. `PAYMENT-RESPONSE` is the receipt, with the transaction on chain.',
  ],
  [
    '400',
    'The call is wrong, and `error` says how. This call did not use the payment: correct it and send it with the same payment.',
  ],
  [
    '402',
    'Not paid. Without a payment, this is the price. With one, `error` says why it was refused: sign a new one.',
  ],
  [
    '502',
    'The work failed and you were not charged. An operation that is paid before the work stays owed: send the same payment again.',
  ],
  [
    '503',
    'Not now. Wait as long as `Retry-After` says and send the same payment again, never a new one. With a receipt it means: paid, in progress.',
  ],
];
