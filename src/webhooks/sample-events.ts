import { EVENT_KINDS } from '../config/event-kinds.js';
import type { LedgerEvent } from '../ledger/store.js';

const PAYMENT = 'ab'.repeat(32);
const SALE = {
  payment: PAYMENT,
  operation: 'sampleOperation',
  payer: '4Nd1mYQzvgV8Vr3Z3nYb7pD6T8K2jF9eqB2uXWiLAN1B',
  amount: '10000',
  network: 'solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1',
  settlement: '5VERv8NMvzbJMEkV8xnrLkEaWRtSz9CosKDYjCJjBRnbJLgp8uirBgmQpjKhoR4tjF3ZpRzrFmBV6UjKdiSZkQUW',
};

/** The data of an event of each kind, in addition to `sample`. */
const FACTS: Readonly<Record<string, LedgerEvent['facts']>> = {
  'sale.paid': SALE,
  'order.opened': { ...SALE, wanted: 20, deadline: 1_900_000_000_000 },
  'order.late': { payment: PAYMENT, wanted: 20, done: 12, deadline: 1_800_000_000_000 },
  'payment.owed': { ...SALE, attempt: 5, failure: 'The backend did not answer in time.', final: true },
  'payment.refunded': { ...SALE, refund: SALE.settlement, refunded: '10000' },
  'payment.unresolved': { ...SALE, since: 1_800_000_000_000 },
  'facilitator.lied': SALE,
  'facilitator.down': { facilitator: 'https://facilitator.example', why: 'no answer' },
  'listing.rejected': {
    ...{ facilitator: 'https://facilitator.example', operation: 'sampleOperation' },
    ...{ transport: 'http', status: 'rejected', why: 'the description is too short' },
  },
  'fee_payer.low': { address: SALE.payer, left: '0.01 SOL' },
  'refund_wallet.low': { address: SALE.payer, left: '1.50 USDC' },
  'canary.failed': { ...SALE, why: 'body/words must be integer' },
  'answers.nearly_full': { bytes: 3_600_000_000, budget: 4_294_967_296 },
};

/**
 * Sample events of the given kinds, or of all kinds if none are given, each marked as a sample. `once` distinguishes samples that are
 * sent at different times.
 */
export function sampleEvents(kinds: readonly string[], once: string): LedgerEvent[] {
  const wanted = kinds.length > 0 ? kinds : Object.keys(EVENT_KINDS);
  return wanted.map(kind => ({
    kind,
    once: `sample ${once}`,
    facts: { ...FACTS[kind], sample: true },
  }));
}
