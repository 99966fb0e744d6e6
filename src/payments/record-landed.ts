import type { Ledger, Payment as Row } from '../ledger/store.js';
import type { Observer } from '../observe/observer.js';
import { answerLifeMs } from './outcome.js';

/**
 * Records that a payment's transfer was found on chain: delivered if its answer is stored, else owed. `now` in ms since 1970.
 * @returns false if this server no longer holds the row
 */
export async function recordLanded(
  ledger: Pick<Ledger, 'answer' | 'deliver' | 'owe'>,
  row: Row,
  settlement: string,
  now: number,
  observer: Pick<Observer, 'tell'>,
): Promise<boolean> {
  const kept = row.flow === 'authorization' ? await ledger.answer(row.id) : undefined;
  const how = { settlement, foundOnChain: true };
  const answerExpiresAt = kept && now + answerLifeMs(row.identifier, kept.body.length);
  const recorded =
    answerExpiresAt === undefined
      ? await ledger.owe(row.id, row.claim, how)
      : await ledger.deliver(row.id, row.claim, { ...how, answerExpiresAt });
  if (!recorded) return false;
  const { id: payment, operation, payer, amount } = row;
  observer.tell({ kind: 'sold', operation, payment, payer, amount, settlement });
  if (row.flow === 'upfront')
    observer.tell({ kind: 'order', change: 'paid', operation, payment, payer, amount });
  return true;
}
