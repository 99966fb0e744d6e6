import type { IdBytes } from './ids.js';
import type { RepaymentCause, RepaymentState, RepaymentWay, State } from './states.js';

/*
 * Rows of the tables as both engines return them. Times are milliseconds since 1970, amounts decimal text in atomic units, flags 0 or 1.
 * Integers stay below 2^53. The meaning of a column is documented at the field that is read from it (`Payment`, `Order`, `Refund`,
 * `Repayment`).
 */

export type PaymentRow = {
  id: IdBytes;
  operation: string;
  request_hash: string;
  request: string | null;
  payer: string;
  amount: string;
  network: string;
  /** The version of x402, 1 or 2. Still written for servers of earlier versions, which do not know `method`. */
  x402_version: number;
  method: string | null;
  /** The rail's evidence. Other rails would also store theirs in this column. */
  signed_transaction: string;
  identifier: string | null;
  flow: 'authorization' | 'upfront';
  state: State;
  claim: number;
  owner: string;
  lease_until: number;
  callers: number;
  caller_until: number;
  runs: number;
  asks: number;
  /** The rail's positions at the first and at the last claim. On Solana they are a slot and a block height. */
  claim_slot: number;
  claim_height: number;
  settlement: string | null;
  reason: string | null;
  alias_of: IdBytes | null;
  created_at: number;
  settling_at: number | null;
  settled_at: number | null;
  decided_at: number | null;
  written_to: number | null;
  /** 1 unless `written_to` is the newest caller. */
  unwritten: number;
  written_at: number | null;
  audited_at: number | null;
  /** The answer's expiry, set at delivery. Not in `answers`, where an update would rewrite the body. */
  answer_expires_at: number | null;
  /** Decimal sums of the repayments that have landed, and of those that are under way. */
  repaid: string;
  repaying: string;
  /** The last transaction that repaid the payment or a part of it. */
  repaid_by: string | null;
  request_id: string | null;
};

/** A row with its state at the time of reading. */
export type PaymentView = PaymentRow & {
  leased: number;
  attended: number;
};

export type RefundRow = {
  payment: IdBytes;
  signature: string;
  amount: string;
  slot: number;
  refunded_at: number;
};

export type RepaymentRow = {
  id: string;
  payment: IdBytes;
  amount: string;
  receiver: string;
  way: RepaymentWay;
  state: RepaymentState;
  cause: RepaymentCause;
  reason: string | null;
  after: number;
  evidence: string | null;
  signature: string | null;
  position: number | null;
  created_at: number;
  decided_at: number | null;
  slot: number | null;
  landed_at: number | null;
  source: string | null;
  failure: string | null;
};

export type AnswerRow = {
  payment: IdBytes;
  status: number;
  headers: string;
  body: Uint8Array;
  size: number;
  saved_at: number;
};

export type OrderRow = {
  payment: IdBytes;
  request: string;
  wanted: number;
  done: number;
  deadline: number;
  attempts: number;
  created_at: number;
  finished_at: number | null;
  /** 1 if the order's deadline has been extended since the order was last opened. */
  extended: number;
  next_attempt_at: number | null;
  tries: number;
  /** How many times the work has been started since the order was last opened: more than once if it was interrupted. */
  starts: number;
  failure: string | null;
};
