import type { Connection } from './connection.js';
import { execute } from './engine.js';
import type { TransactionBody } from './engine.js';
import { LedgerFault } from './fault.js';
import { readMeta } from './migrate.js';
import type { Payment } from './payment.js';
import { findToChange, lockPayer, sameIdentifier } from './queries/claims.js';
import * as queries from './queries/found-payments.js';
import { bindReceiver, endRestoration } from './queries/meta.js';

/**
 * A finalized transfer on chain to a receiver of the ledger. `evidence`: see `ClaimRequest`. `slot`: the slot
 * of the transfer. `payTo`: if the ledger has sold nothing yet, it is now bound to this receiver.
 */
export type FoundPayment = Pick<Payment, 'id' | 'payer' | 'amount' | 'network' | 'evidence'> & {
  settlement: string;
  slot: number;
  paidAt: number;
  payTo: string;
};

/** The call that a buyer requests with a payment found on chain. */
export type CallOf = Pick<
  Payment,
  'payer' | 'operation' | 'requestHash' | 'request' | 'flow' | 'identifier' | 'method'
>;

/**
 * What happened to a payment found on chain:
 * - `taken`: it is now owed.
 * - `known`: the ledger already recorded it as paid.
 * - `busy`: a server is working on it.
 * - `resolving`: it is being settled. The server will find the transfer itself, and may already have the answer.
 * - `alias`: the ledger has it as an alias, which should not be settled, but it was paid anyway.
 */
export type TakenIn = 'taken' | 'known' | 'busy' | 'resolving' | 'alias';

/** Payments that the ledger lost and the chain shows. All functions reject with a LedgerFault if the database fails. */
export function foundPaymentsOf({ engine, now }: Connection) {
  return {
    /**
     * Marks a payment as owed if it was paid on chain but the ledger does not show it as paid. Idempotent;
     * safe while servers and other commands run.
     */
    takeIn: (found: FoundPayment): Promise<TakenIn> => engine.write(() => takeIn(found, now)),
    /**
     * Assigns the call to a payment that was found on chain, when its buyer presents it.
     * @returns false if it already has a call
     */
    giveCall: (id: string, call: CallOf): Promise<boolean> =>
      engine.write(() => giveCall(id, call, { shared: engine.dialect.concurrentWriters, now })),
    /** Records that a restored ledger was compared with the chain, so that servers can start. */
    endRestoration: async (): Promise<void> => {
      await engine.write(() => execute(endRestoration()));
    },
  };
}

function* takeIn(found: FoundPayment, now: Connection['now']): TransactionBody<TakenIn> {
  const { id, payer, amount, network, evidence, settlement, slot, paidAt, payTo } = found;
  if ((yield* readMeta()).has('retired'))
    throw new LedgerFault('failed', 'This ledger is retired. Add the payments to the one it was copied to.');
  yield* execute(bindReceiver({ payTo }));
  // Only a transfer after the claim counts, so the claim gets the slot before the transfer's.
  const columns = { id, settlement, claim_slot: slot - 1, now: now() };
  const paid = {
    payer,
    amount: amount.toString(),
    network,
    signed_transaction: evidence,
    created_at: paidAt,
  };
  if ((yield* execute(queries.insertFound({ ...columns, ...paid }))).length > 0) return 'taken';
  const [row] = yield* execute(findToChange({ id }));
  if (!row) return 'busy';
  if (row.settled_at !== null) return 'known';
  if (row.alias_of !== null) return 'alias';
  if (row.state === 'settling' && row.claim_slot < slot) return 'resolving';
  return (yield* execute(queries.oweFound(columns))).length > 0 ? 'taken' : 'busy';
}

/** If the payer has used the identifier for another payment in the meantime, that payment keeps it and this one gets none. */
function* giveCall(
  id: string,
  { payer, operation, requestHash: request_hash, request, flow, identifier, method }: CallOf,
  { shared, now }: { shared: boolean; now: Connection['now'] },
): TransactionBody<boolean> {
  if (shared) yield* execute(lockPayer({ payer }));
  const other =
    identifier === null ? [] : yield* execute(sameIdentifier({ payer, identifier, id, now: now() }));
  const call = { operation, request_hash, request, flow, method };
  const kept = other.length > 0 ? null : identifier;
  return (yield* execute(queries.giveCall({ id, ...call, identifier: kept }))).length > 0;
}
