import type { IdBytes } from './ids.js';
import type { State } from './states.js';

/*
 * Rows of the tables as both engines hold them. Times are milliseconds since 1970, amounts decimal text in atomic units,
 * flags 0 or 1. Integers stay below 2^53.
 */

export type PaymentRow = {
  /** sha256 of the signed message bytes. */
  id: IdBytes;
  operation: string;
  request_hash: string;
  /** Canonical JSON of the request, for orders that continue after the caller has left. */
  request: string | null;
  payer: string;
  amount: string;
  network: string;
  /** 1 or 2, for servers of earlier versions; they write no `method`. */
  x402_version: number;
  /** The name of the method that carried the payment. */
  method: string | null;
  /** The evidence of its rail, in a column that has the name of the first one's. */
  signed_transaction: string;
  identifier: string | null;
  flow: 'authorization' | 'upfront';
  state: State;
  /** Grows with every claim; every transition must present it. */
  claim: number;
  owner: string;
  /** A worker holds it until then. */
  lease_until: number;
  /** The number of requests that have ever waited for this row. */
  callers: number;
  /** The newest caller counts as present until then; 0: it has left or was answered with 503. */
  caller_until: number;
  runs: number;
  asks: number;
  /** The rail's positions of the first claim and of the last one, in columns that have the names of the first rail's. */
  claim_slot: number;
  claim_height: number;
  settlement: string | null;
  reason: string | null;
  alias_of: IdBytes | null;
  /** First claim, never changed by a later one. */
  created_at: number;
  settling_at: number | null;
  /** When the money was known to have moved. */
  settled_at: number | null;
  /** When the row became released, delivered or refunded. */
  decided_at: number | null;
  /** The number of the caller to which the answer was written out. */
  written_to: number | null;
  /** 1 unless `written_to` is the newest caller. */
  unwritten: number;
  /** When the last byte was handed over. */
  written_at: number | null;
  audited_at: number | null;
  /** Set at delivery; kept here because changing it beside the body would rewrite the body. */
  answer_expires_at: number | null;
};

/** A row with its state at the time of reading. */
export type PaymentView = PaymentRow & {
  /** 1 while a worker holds it. */
  leased: number;
  /** 1 while its newest caller counts as present. */
  attended: number;
};

/** The transfer that refunded a payment, as seen on chain. */
export type RefundRow = {
  payment: IdBytes;
  /** Signature of the refunding transaction; no two refunds share one. */
  signature: string;
  /** What the payer received, at least what was paid. */
  amount: string;
  slot: number;
  /** Time of its block. */
  refunded_at: number;
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
  /** How many parts of the work are done, as its operation reported. */
  done: number;
  deadline: number;
  attempts: number;
  created_at: number;
  finished_at: number | null;
  /** 1 if its deadline was extended since it was last opened. */
  extended: number;
  /**
   * While it is in progress: no server takes it up before. After that: when a call may open it again; null if only the operator may.
   */
  next_attempt_at: number | null;
  /** How often it was opened. An extension is part of the attempt that it extends. */
  tries: number;
  /** How often the work was begun since it was last opened: more than once if it was interrupted. */
  starts: number;
  /** Why the last attempt failed, as its buyer was told. */
  failure: string | null;
};
