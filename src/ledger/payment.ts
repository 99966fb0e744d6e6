import { idOf } from './ids.js';
import type { PaymentView } from './schema.js';
import type { State } from './states.js';

/** A row of the ledger. Times are milliseconds since 1970, amounts atomic units. */
export type Payment = {
  /** sha256 of the signed message bytes, hex. */
  readonly id: string;
  readonly operation: string;
  readonly requestHash: string;
  /** Canonical JSON of the request; null where the work needs no memory of it. */
  readonly request: string | null;
  readonly payer: string;
  readonly amount: bigint;
  readonly network: string;
  readonly x402Version: 1 | 2;
  /** The signed transaction, base64. */
  readonly transaction: string;
  readonly identifier: string | null;
  readonly flow: 'authorization' | 'upfront';
  readonly state: State;
  readonly claim: number;
  readonly owner: string;
  readonly leaseUntil: number;
  /** A worker held it when it was read, by the ledger's clock. */
  readonly leased: boolean;
  /** How many requests ever waited for it. */
  readonly callers: number;
  /** Its newest caller was seen until then; 0: it is gone or was sent away. */
  readonly callerUntil: number;
  /** Its newest caller counted as present when it was read, by the ledger's clock. */
  readonly attended: boolean;
  readonly runs: number;
  /** How often a facilitator was asked to settle it. */
  readonly asks: number;
  /** Slot at the first claim: only a transfer after it counts. */
  readonly claimSlot: number;
  /** Block height at the last claim: absence is proven 300 blocks later. */
  readonly claimHeight: number;
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
  /** Number of the caller that the answer was written out to. */
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
    x402Version: row.x402_version === 1 ? 1 : 2,
    transaction: row.signed_transaction,
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
    claimSlot: row.claim_slot,
    claimHeight: row.claim_height,
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
