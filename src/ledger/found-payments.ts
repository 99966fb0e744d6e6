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
 * A transfer to a receiver of the ledger, as the chain shows it at `finalized`. `evidence`: of its rail, as of a claim. `slot`: where it
 * landed. `payTo`: the receiver to which the ledger is bound, if it has sold nothing yet.
 */
export type FoundPayment = Pick<Payment, 'id' | 'payer' | 'amount' | 'network' | 'evidence'> & {
  settlement: string;
  slot: number;
  paidAt: number;
  payTo: string;
};

/** The call that a payment found on chain is sent for. */
export type CallOf = Pick<
  Payment,
  'payer' | 'operation' | 'requestHash' | 'request' | 'flow' | 'identifier' | 'method'
>;

/**
 * - `taken`: it is owed now.
 * - `known`: the ledger has it as paid.
 * - `busy`: a server works on it. `resolving`: a server will find its transfer, and may have its answer.
 * - `alias`: it redeems another payment, and was paid anyway.
 */
export type TakenIn = 'taken' | 'known' | 'busy' | 'resolving' | 'alias';

/** Payments that the ledger lost and the chain shows. All functions reject with a LedgerFault if the database fails. */
export function foundPaymentsOf({ engine, now }: Connection) {
  return {
    /** Makes a payment owed that is on chain but not paid in the ledger. Idempotent, and safe while servers and other operators work. */
    takeIn: (found: FoundPayment): Promise<TakenIn> => engine.write(() => takeIn(found, now)),
    /**
     * Gives a payment that was found on chain the call with which it was sent.
     * @returns false if it has a call
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
    throw new LedgerFault(
      'failed',
      'This ledger is retired. Take the payments into the one it was copied to.',
    );
  yield* execute(bindReceiver({ payTo }));
  // Only a transfer after the claim counts, so the claim is dated before it.
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

/** An identifier that its payer has used for another payment since stays with that one. */
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
