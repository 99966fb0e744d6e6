/** What the operator can be told, by the name that an event has as its `type`: the source of docs/reference/events.md. */
export const EVENT_KINDS: Readonly<Record<string, string>> = {
  'sale.paid': 'somebody has paid for a call',
  'order.opened': 'an order is paid and waits for people',
  'order.late': 'the time of an order is up, and it is not done',
  'payment.owed': 'a payment has no answer: work that follows it failed, or its caller left',
  'payment.refunded': 'a payment was refunded',
  'payment.unresolved': 'it has not been known for ten minutes whether a payment was settled',
  'facilitator.lied': 'a facilitator reported a settlement that is not on chain',
  'facilitator.down': 'a facilitator does not answer',
  'listing.rejected': 'the directory of a facilitator rejects an operation',
  'fee_payer.low': 'the fee payer of your own facilitator has little SOL left',
  'refund_wallet.low': 'the wallet that refunds owed orders (REFUND_KEYPAIR) has little left',
  'canary.failed': 'a purchase of “coinslot canary” failed, or was not what the contract says',
  'answers.nearly_full': 'the space for answers (ANSWER_STORE_MB) is nearly used up',
};
