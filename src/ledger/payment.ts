import { idOf } from './ids.js';
import type { PaymentView } from './schema.js';
import type { State } from './states.js';

/** A row of the ledger. Times are milliseconds since 1970, amounts atomic units. */
export type Payment = {
  /** sha256 of the signed message bytes, hex. */
  readonly id: string;
  readonly operation: string;
  readonly requestHash: string;
  /** Canonical JSON of the request; null if the work does not need it stored. */
  readonly request: string | null;
  readonly payer: string;
  readonly amount: bigint;
  readonly network: string;
  /** The name of the method that carried it. */
  readonly method: string;
  /** What its rail settles and proves it by. */
  readonly evidence: string;
  readonly identifier: string | null;
  readonly flow: 'authorization' | 'upfront';
  readonly state: State;
  readonly claim: number;
  readonly owner: string;
  readonly leaseUntil: number;
  /** Whether a worker held it when it was read, by the ledger's clock. */
  readonly leased: boolean;
  /** The number of requests that have ever waited for it. */
  readonly callers: number;
  /** Its newest caller counts as present until then; 0: it has left or was answered with 503. */
  readonly callerUntil: number;
  /** Whether its newest caller counted as present when it was read, by the ledger's clock. */
  readonly attended: boolean;
  readonly runs: number;
  /** The number of settle requests sent to a facilitator. */
  readonly asks: number;
  /** The rail's position of the first claim. Only a transfer after it counts. */
  readonly after: number;
  /** The rail's position of the last claim. The rail says how much later absence can be proven. */
  readonly position: number;
  /** Transaction signature of the settlement, base58. */
  readonly settlement: string | null;
  /** Why it was released or refunded. */
  readonly reason: string | null;
  /** The payment whose answer this one redeems; an alias is never settled. */
  readonly aliasOf: string | null;
  /** First claim. */
  readonly createdAt: number;
  readonly settlingAt: number | null;
  readonly settledAt: number | null;
  readonly decidedAt: number | null;
  /** The number of the caller to which the answer was written out. */
  readonly writtenTo: number | null;
  readonly writtenAt: number | null;
  readonly auditedAt: number | null;
  readonly answerExpiresAt: number | null;
};

export function paymentOf(row: PaymentView): Payment {
  return {
    id: idOf(row.id),
    operation: row.operation,
    requestHash: row.request_hash,
    request: row.request,
    payer: row.payer,
    amount: BigInt(row.amount),
    network: row.network,
    method: row.method ?? `x402-v${row.x402_version === 1 ? 1 : 2}`,
    evidence: row.signed_transaction,
    identifier: row.identifier,
    flow: row.flow,
    state: row.state,
    claim: row.claim,
    owner: row.owner,
    leaseUntil: row.lease_until,
    leased: row.leased === 1,
    callers: row.callers,
    callerUntil: row.caller_until,
    attended: row.attended === 1,
    runs: row.runs,
    asks: row.asks,
    after: row.claim_slot,
    position: row.claim_height,
    settlement: row.settlement,
    reason: row.reason,
    aliasOf: row.alias_of && idOf(row.alias_of),
    createdAt: row.created_at,
    settlingAt: row.settling_at,
    settledAt: row.settled_at,
    decidedAt: row.decided_at,
    writtenTo: row.written_to,
    writtenAt: row.written_at,
    auditedAt: row.audited_at,
    answerExpiresAt: row.answer_expires_at,
  };
}
