import { idOf } from './ids.js';
import type { PaymentRow, PaymentView } from './schema.js';

/**
 * The operation recorded for a payment that the ledger had lost and that was found on chain. The chain does
 * not show what was bought, so the next call that presents the payment is assigned to it.
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
    /** Canonical JSON of the request; null unless it is stored for work that may outlive its caller. */
    request: row.request,
    payer: row.payer,
    amount: BigInt(row.amount),
    network: row.network,
    /** The payment method, such as `x402-v2` or `mpp`. */
    method: row.method ?? `x402-v${row.x402_version === 1 ? 1 : 2}`,
    /** What the rail needs to settle the payment and to prove its outcome. */
    evidence: row.signed_transaction,
    identifier: row.identifier,
    flow: row.flow,
    state: row.state,
    /** The number of the current claim. It grows with every claim, and every transition must present it. */
    claim: row.claim,
    owner: row.owner,
    /** The time until which a worker holds the payment. */
    leaseUntil: row.lease_until,
    /** Whether a worker held the payment when it was read, by the ledger's clock. */
    leased: row.leased === 1,
    /** The number of requests that have ever waited for the payment. */
    callers: row.callers,
    /** The time until which its newest caller counts as present; 0: the caller has left or was answered with 503. */
    callerUntil: row.caller_until,
    /** Whether its newest caller counted as present when it was read, by the ledger's clock. */
    attended: row.attended === 1,
    runs: row.runs,
    /** The number of settle requests sent to a facilitator. */
    asks: row.asks,
    /** The rail's position at the first claim (on Solana, a slot). Only a transfer after it counts as this payment's. */
    after: row.claim_slot,
    /** The rail's position at the last claim (on Solana, a block height). From it the rail calculates when the transfer can no longer land. */
    position: row.claim_height,
    /** Transaction signature of the settlement, base58. */
    settlement: row.settlement,
    /** Why the payment was released or refunded. */
    reason: row.reason,
    /** The payment whose answer this one redeems; an alias is never settled. */
    aliasOf: row.alias_of && idOf(row.alias_of),
    /** When the payment was first claimed. */
    createdAt: row.created_at,
    settlingAt: row.settling_at,
    /** When the server learned that the money had moved. */
    settledAt: row.settled_at,
    /** When the payment became released, delivered or refunded. */
    decidedAt: row.decided_at,
    /** The number of the caller to which the answer was written out. */
    writtenTo: row.written_to,
    /** When the last byte of the answer was handed to the socket. */
    writtenAt: row.written_at,
    /** When the payment's outcome was confirmed as final on chain. */
    auditedAt: row.audited_at,
    answerExpiresAt: row.answer_expires_at,
    /** The refunded amount, and the amount being refunded. */
    repaid: repaidOf(row),
    repaying: BigInt(row.repaying),
    /** The last transaction that repaid the payment or a part of it. */
    repaidBy: row.repaid_by,
    /** The id of the last request that presented the payment (`X-Request-Id`); null if unknown. */
    requestId: row.request_id,
  };
}

/** Servers of earlier versions refund whole payments, and record only the state `refunded`. */
export function repaidOf({ state, amount, repaid }: Pick<PaymentRow, 'state' | 'amount' | 'repaid'>): bigint {
  return BigInt(state === 'refunded' && repaid === '0' ? amount : repaid);
}
