import { NOT_CHARGED } from '../contract/not-charged.js';
import type { Caller, Payment as Row } from '../ledger/store.js';
import { inProgress, type Outcome } from './outcome.js';
import type { PaidRequestParts } from './paid-request.js';
import { idleOrder, pending, refunded, sold, stillOwed, type SharedOutcome } from './shared-outcome.js';

/** What a paid call would be answered with now, or why there is nothing. */
export type PickedUp =
  | { kind: 'nothing'; error: string }
  | {
      kind: 'found';
      /** The name of the method that carried the payment. */
      method: string;
      payer: string;
      outcome: Exclude<Outcome, { kind: 'refused' | 'invalid' }>;
    };

type Parts = Pick<PaidRequestParts, 'ledger' | 'answers' | 'orders' | 'callers'>;

/**
 * What a payment is worth, for somebody who has the key that one of its callers was given. No work starts, and nobody counts as a caller
 * that waits. An answer that is fetched whole counts as written to that caller, if it is still the newest one.
 */
export async function pickUp(parts: Parts, { id, number }: Caller): Promise<PickedUp> {
  const { ledger, callers } = parts;
  const own = await ledger.find(id);
  const row = own?.aliasOf ? await ledger.find(own.aliasOf) : own;
  if (!own || !row) return nothing('There is no call with this key any more. Nothing is kept for it.');
  const shared = await worthOf(parts, row);
  if (typeof shared === 'string') return nothing(shared);
  const { method, payer } = own;
  const sale = callers.fetching({ id: row.id, number: row === own ? number : 0 });
  const outcome = shared(sale);
  if (outcome.kind === 'refused' || outcome.kind === 'invalid') return nothing(outcome.error);
  return { kind: 'found', method, payer, outcome };
}

/** The outcome for a caller who asks now, or why there is nothing. */
async function worthOf({ answers, orders }: Parts, row: Row): Promise<SharedOutcome | string> {
  switch (row.state) {
    case 'claimed':
      return row.leased ? inProgress : `This call was not finished. ${NOT_CHARGED}.`;
    case 'settling':
      return pending(row);
    case 'owed': {
      const instead = row.flow === 'upfront' ? await orders?.whyIdle(row.id) : undefined;
      return instead ? idleOrder(row, instead) : stillOwed(row);
    }
    case 'delivered': {
      const kept = await answers.get(row.id);
      return kept ? sold(row, kept) : 'The answer of this call was delivered and is no longer kept.';
    }
    case 'released':
      return `The payment of this call was refused. ${NOT_CHARGED}.`;
    case 'refunded':
      return refunded(row);
  }
}

/** How many parts of an order are done, of how many. */
export type Progress = { done: number; wanted: number };

/** Undefined if the payment has no order that is in progress, or the work of its order has no parts. */
export async function progressOf(
  { ledger }: Pick<Parts, 'ledger'>,
  id: string,
): Promise<Progress | undefined> {
  const own = await ledger.find(id);
  const row = own?.aliasOf ? await ledger.find(own.aliasOf) : own;
  const order = row?.state === 'owed' ? await ledger.order(row.id) : undefined;
  if (!order || order.wanted === 0) return undefined;
  return { done: order.done, wanted: order.wanted };
}

function nothing(error: string): PickedUp {
  return { kind: 'nothing', error };
}
