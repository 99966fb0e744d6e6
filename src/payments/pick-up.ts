import { NOT_CHARGED } from '../contract/not-charged.js';
import type { Payment as Row } from '../ledger/store.js';
import { failure, inProgress, type Outcome } from './outcome.js';
import { NO_SALE, type PaidRequestParts } from './paid-request.js';
import { networkName } from './requirements.js';
import { failedOwed, pending, sold, stillOwed, type SharedOutcome } from './shared-outcome.js';

/** What a paid call would be answered with now, or why there is nothing. */
export type PickedUp =
  | { kind: 'nothing'; error: string }
  | {
      kind: 'found';
      version: 1 | 2;
      payer: string;
      outcome: Exclude<Outcome, { kind: 'refused' | 'invalid' }>;
    };

type Parts = Pick<PaidRequestParts, 'ledger' | 'answers' | 'orders' | 'offers'>;

/**
 * What a payment is worth, for a caller who proved by its key that it sent it. Nothing is written: the caller does not count as one
 * that waits, no work starts, and the answer does not count as written.
 */
export async function pickUp(parts: Parts, id: string): Promise<PickedUp> {
  const { ledger, offers } = parts;
  const own = await ledger.find(id);
  const row = own?.aliasOf ? await ledger.find(own.aliasOf) : own;
  if (!own || !row) return nothing('There is no call with this key any more. Nothing is kept for it.');
  const shared = await worthOf(parts, row);
  if (typeof shared === 'string') return nothing(shared);
  const { x402Version: version, payer } = own;
  const outcome = shared({ network: networkName(offers.terms, version), sale: NO_SALE });
  if (outcome.kind === 'refused' || outcome.kind === 'invalid') return nothing(outcome.error);
  return { kind: 'found', version, payer, outcome };
}

/** The outcome for a caller who asks now, or why there is nothing. */
async function worthOf({ answers, orders }: Parts, row: Row): Promise<SharedOutcome | string> {
  switch (row.state) {
    case 'claimed':
      return row.leased ? inProgress : `This call was not finished. ${NOT_CHARGED}.`;
    case 'settling':
      return pending(row);
    case 'owed': {
      const failed = row.flow === 'upfront' ? await orders?.failureOf(row.id) : undefined;
      return failed === undefined ? stillOwed(row) : failedOwed(row, failed);
    }
    case 'delivered': {
      const kept = await answers.get(row.id);
      return kept ? sold(row, kept) : 'The answer of this call was delivered and is no longer kept.';
    }
    case 'released':
      return `The payment of this call was refused. ${NOT_CHARGED}.`;
    case 'refunded':
      return () => ({ kind: 'answer', answer: failure(502, refundNote(row)) });
  }
}

/** How many replies of people an order has, of how many; undefined if the payment has no order that is in progress or asks people. */
export async function progressOf(
  { ledger }: Pick<Parts, 'ledger'>,
  id: string,
): Promise<{ replies: number; wanted: number } | undefined> {
  const own = await ledger.find(id);
  const row = own?.aliasOf ? await ledger.find(own.aliasOf) : own;
  const order = row?.state === 'owed' ? await ledger.order(row.id) : undefined;
  if (!order || order.wanted === 0) return undefined;
  return { replies: (await ledger.replies(order.payment)).length, wanted: order.wanted };
}

function refundNote({ reason }: Row): string {
  return `This payment was refunded (${reason ?? 'by the operator'}): sign a new one`;
}

function nothing(error: string): PickedUp {
  return { kind: 'nothing', error };
}
