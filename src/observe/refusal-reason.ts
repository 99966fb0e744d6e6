/** The first words of refusals (see `checkPayment` and `explain`), with their meaning; other beginnings count as `other`. */
export const REFUSAL_REASONS = {
  amount: 'the amount of the payment differs from the price',
  asset: 'the payment is in a token other than this network’s USDC',
  blockhash: 'the blockhash of the transaction is expired or unknown',
  funds: 'the payer has too little USDC, or no USDC account',
  network: 'the payment is for another network',
  payer: 'the operator sells nothing to this wallet (`BLOCKED_PAYERS`)',
  payTo: 'the payment is to another receiver',
  paymentFlow: 'the payment was made for the other payment flow',
  'refused by the facilitator': 'the facilitator refused the payment; its own words follow',
  scheme: 'the scheme of the payment is not `exact`',
  transaction:
    'the transaction cannot be decoded, is not the single required transfer, is signed wrongly, names a fee payer that was not offered, or would fail on chain',
} as const;

const REASONS = Object.keys(REFUSAL_REASONS);

/** The reason for a refusal as one of a few words, for a metric label. */
export function reasonOf(error: string): string {
  return REASONS.find(reason => error.startsWith(`${reason}:`)) ?? 'other';
}
