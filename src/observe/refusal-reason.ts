/** The words with which refusals begin (see `PaymentChecker` and `explain`); what begins otherwise counts as `other`. */
const REASONS = [
  'amount',
  'asset',
  'blockhash',
  'funds',
  'network',
  'payTo',
  'paymentFlow',
  'refused by the facilitator',
  'scheme',
  'transaction',
] as const;

/** The reason of a refusal, as one of few words, for a label. */
export function reasonOf(error: string): string {
  return REASONS.find(reason => error.startsWith(`${reason}:`)) ?? 'other';
}
