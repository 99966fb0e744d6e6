import type { Ledger, Payment as Row } from '../ledger/store.js';
import type { Observer, Sold } from '../observe/observer.js';
import { answerLifeMs } from './outcome.js';

/**
 * Records that a payment's transfer was found on chain. The payment becomes `delivered` if its answer is stored, otherwise `owed`.
 * @returns false if this server no longer holds the row
 */
export async function recordLanded(
  { ledger, observer, now }: { ledger: Ledger; observer: Observer; now: () => number },
  row: Row,
  settlement: string,
): Promise<boolean> {
  const kept = row.flow === 'authorization' ? await ledger.answer(row.id) : undefined;
  const how = { settlement, foundOnChain: true };
  const answerExpiresAt = kept && now() + answerLifeMs(row.identifier, kept.body.length);
  const recorded =
    answerExpiresAt === undefined
      ? await ledger.owe(row.id, row.claim, how)
      : await ledger.deliver(row.id, row.claim, { ...how, answerExpiresAt });
  if (!recorded) return false;
  const { id: payment, operation, flow, payer, amount } = row;
  tellSold(observer, { payment, operation, flow, payer, amount, settlement });
  return true;
}

/** Reports a sale to the observer and, if it was paid up front, also a new order. */
export function tellSold(
  observer: Pick<Observer, 'tell'>,
  { flow, ...sale }: Omit<Sold, 'kind'> & Pick<Row, 'flow'>,
): void {
  observer.tell({ kind: 'sold', ...sale });
  const { operation, payment, payer, amount, requestId } = sale;
  if (flow === 'upfront')
    observer.tell({ kind: 'order', change: 'paid', operation, payment, payer, amount, requestId });
}
