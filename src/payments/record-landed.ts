import type { Ledger, Payment as Row } from '../ledger/store.js';
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
): Promise<boolean> {
  const kept = row.flow === 'authorization' ? await ledger.answer(row.id) : undefined;
  const how = { settlement, foundOnChain: true };
  if (!kept) return ledger.owe(row.id, row.claim, how);
  const answerExpiresAt = now + answerLifeMs(row.identifier, kept.body.length);
  return ledger.deliver(row.id, row.claim, { ...how, answerExpiresAt });
}
