import { NOT_CHARGED } from '../contract/not-charged.js';
import type { Caller, Payment as Row } from '../ledger/store.js';
import type { Deps } from './deps.js';
import {
  goingBack,
  idleOrder,
  inProgress,
  isGoingBack,
  pending,
  refunded,
  sold,
  stillOwed,
  type Outcome,
} from './outcome.js';
import type { SharedOutcome } from './outcome.js';

type Unfound = { kind: 'refused' | 'invalid' };

/** The answer that the paid call would get now, or the reason why there is none. */
export type PickedUp =
  | { kind: 'nothing'; error: string }
  | {
      kind: 'found';
      /** The name of the method that carried the payment. */
      method: string;
      payer: string;
      outcome: Exclude<Outcome, Unfound>;
      /** When the payment arrived, in ms since 1970. */
      since: number;
    };

/**
 * What a payment has bought so far, for someone with the key of one of its callers. No work starts, and the request does not count as a
 * waiting caller. An answer that is fetched whole counts as written to that caller, if that caller is still the newest.
 */
export async function pickUp(deps: Deps, { id, number }: Caller): Promise<PickedUp> {
  const { own, row } = await rowsOf(deps, id);
  if (!own || !row) return nothing('The call for this key is no longer stored, and neither is its answer.');
  const worth = await worthOf(deps, row);
  if (typeof worth === 'string') return nothing(worth);
  const sale = deps.callers.fetching({ id: row.id, number: row === own ? number : 0 });
  const { method, payer, operation, requestHash, createdAt: since } = own;
  const outcome = worth.kind === 'sold' ? { ...worth, sale, call: { operation, requestHash } } : worth;
  return { kind: 'found', method, payer, outcome, since };
}

/** A payment, and the payment whose answer it redeems: the same one, unless it is an alias. */
async function rowsOf({ ledger }: Deps, id: string): Promise<{ own: Row | undefined; row: Row | undefined }> {
  const own = await ledger.find(id);
  return { own, row: own?.aliasOf ? await ledger.find(own.aliasOf) : own };
}

/** The outcome for a caller who asks now, or the reason why there is none. */
async function worthOf(
  { answers, orders }: Deps,
  row: Row,
): Promise<Exclude<SharedOutcome, Unfound> | string> {
  switch (row.state) {
    case 'claimed':
      return row.leased ? inProgress() : `This call was not finished. ${NOT_CHARGED}.`;
    case 'settling':
      return pending(row);
    case 'owed': {
      if (isGoingBack(row)) return goingBack(row);
      const instead = row.flow === 'upfront' ? await orders?.whyIdle(row.id) : undefined;
      return instead ? idleOrder(row, instead) : stillOwed(row);
    }
    case 'delivered': {
      const kept = await answers.get(row.id);
      return kept ? sold(row, kept) : 'The answer to this call was delivered and is no longer kept.';
    }
    case 'released':
      return `The payment for this call was refused. ${NOT_CHARGED}.`;
    case 'refunded':
      return refunded(row);
  }
}

/** How many parts of an order are done, and how many there are. */
export type Progress = { done: number; wanted: number };

/** Undefined if the payment has no order in progress, or its order has no parts. */
export async function progressOf(deps: Deps, id: string): Promise<Progress | undefined> {
  const { row } = await rowsOf(deps, id);
  const order = row?.state === 'owed' ? await deps.ledger.order(row.id) : undefined;
  return order && order.wanted > 0 ? { done: order.done, wanted: order.wanted } : undefined;
}

function nothing(error: string): PickedUp {
  return { kind: 'nothing', error };
}
