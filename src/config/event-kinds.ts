/** The events for the operator by their `type`: the source of docs/reference/events.md. */
export const EVENT_KINDS: Readonly<Record<string, string>> = {
  'sale.paid': 'a buyer has paid for a call',
  'order.opened': 'an order has been paid for and is waiting for people',
  'order.late': 'an order has passed its deadline without an answer',
  'payment.owed': 'a paid call has no answer: its work failed, or its caller left',
  'payment.refunded': 'a payment was refunded',
  'payment.unresolved': 'for ten minutes, the server has not known whether a payment was settled',
  'facilitator.lied': 'a facilitator reported a settlement that is not on chain',
  'facilitator.down': 'a facilitator does not answer',
  'listing.rejected': 'the directory of a facilitator rejects an operation',
  'fee_payer.low': 'the fee payer of your own facilitator has little SOL left',
  'refund_wallet.low': 'the wallet that refunds owed orders (REFUND_KEYPAIR) is running low',
  'canary.failed': 'a purchase by “coinslot canary” failed, or did not match the contract',
  'answers.nearly_full': 'the space for answers (ANSWER_STORE_MB) is nearly used up',
};
