import { idOf } from './ids.js';
import type { PaymentRow, PaymentView } from './schema.js';

/**
 * The operation of a payment that the ledger had lost and that was found on chain, where its call is unknown. It gets the next call that
 * it is sent with.
 */
export const FOUND_ON_CHAIN = '(found on chain)';

/** A row of the ledger. Times are milliseconds since 1970, amounts atomic units. */
export type Payment = Readonly<ReturnType<typeof paymentOf>>;

export function paymentOf(row: PaymentView) {
  return {
    /** sha256 of the signed message bytes, hex. */
    id: idOf(row.id),
    operation: row.operation,
    requestHash: row.request_hash,
    /** Canonical JSON of the request; null if the work does not need it stored. */
    request: row.request,
    payer: row.payer,
    amount: BigInt(row.amount),
    network: row.network,
    /** The name of the method that carried it. */
    method: row.method ?? `x402-v${row.x402_version === 1 ? 1 : 2}`,
    /** The evidence with which its rail settles and proves it. */
    evidence: row.signed_transaction,
    identifier: row.identifier,
    flow: row.flow,
    state: row.state,
    /** Grows with every claim; every transition must present it. */
    claim: row.claim,
    owner: row.owner,
    /** A worker holds it until then. */
    leaseUntil: row.lease_until,
    /** Whether a worker held it when it was read, by the ledger's clock. */
    leased: row.leased === 1,
    /** The number of requests that have ever waited for it. */
    callers: row.callers,
    /** Its newest caller counts as present until then; 0: it has left or was answered with 503. */
    callerUntil: row.caller_until,
    /** Whether its newest caller counted as present when it was read, by the ledger's clock. */
    attended: row.attended === 1,
    runs: row.runs,
    /** The number of settle requests sent to a facilitator. */
    asks: row.asks,
    /** The rail's position of the first claim. Only a transfer after it counts. */
    after: row.claim_slot,
    /** The rail's position of the last claim. The rail says how much later absence can be proven. */
    position: row.claim_height,
    /** Transaction signature of the settlement, base58. */
    settlement: row.settlement,
    /** Why it was released or refunded. */
    reason: row.reason,
    /** The payment whose answer this one redeems; an alias is never settled. */
    aliasOf: row.alias_of && idOf(row.alias_of),
    /** First claim, never changed by a later one. */
    createdAt: row.created_at,
    settlingAt: row.settling_at,
    /** When the money was known to have moved. */
    settledAt: row.settled_at,
    /** When it became released, delivered or refunded. */
    decidedAt: row.decided_at,
    /** The number of the caller to which the answer was written out. */
    writtenTo: row.written_to,
    /** When the last byte was handed over. */
    writtenAt: row.written_at,
    auditedAt: row.audited_at,
    answerExpiresAt: row.answer_expires_at,
    /** The refunded amount, and the amount being refunded. */
    repaid: repaidOf(row),
    repaying: BigInt(row.repaying),
    /** The last transaction that repaid some of it. */
    repaidBy: row.repaid_by,
    /** The last request that brought it (`X-Request-Id`); null if it has not been noted. */
    requestId: row.request_id,
  };
}

/** A server of an earlier version refunds whole payments, and notes only their state. */
export function repaidOf({ state, amount, repaid }: Pick<PaymentRow, 'state' | 'amount' | 'repaid'>): bigint {
  return BigInt(state === 'refunded' && repaid === '0' ? amount : repaid);
}
