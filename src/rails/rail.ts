import type { PricedOperation } from '../contract/contract.js';
import type { ClaimRequest, Payment as Row } from '../ledger/store.js';
import type { Transport } from '../observe/observer.js';

/** A payment that its rail has read and found to be signed by its payer. Neither the ledger nor a facilitator has seen it yet. */
export type Checked = {
  /** The payment's id: 64 hex digits, the same for each copy of it. */
  readonly id: string;
  /** The owner of the money. */
  readonly payer: string;
  /** The evidence that settles it and proves its outcome, as text in the rail's own form. Stored in the ledger. */
  readonly evidence: string;
  /** Whether the payer can send this payment without the server, so that its money may move at any time, unnoticed. */
  readonly selfPaid?: boolean;
};

/** A payment that does not pay the price still has `checked`, because it may have been accepted at an earlier price. */
export type Check<C extends Checked = Checked> =
  { ok: true; checked: C } | { ok: false; error: string; checked?: C };

/**
 * The values, other than price and receiver, that buyers sign with and that change while the server runs. Each rail has its own names for
 * them.
 */
export type Hints = Readonly<Record<string, string>>;

/** The purpose of a payment, and the transport of its call. */
export type Called = { operation: PricedOperation; transport: Transport };

/** The state of the rail when a payment is claimed, as numbers that never decrease. Only the rail reads them. */
export type Position = Pick<ClaimRequest, 'after' | 'position'>;

/** The facilitator of a payment is known not to answer. `instead`: what the buyer can do immediately, if anything. */
export type Outage = { name: string; retryAfterSeconds: number; instead?: string };

/** A failure of the facilitator, not of one payment. */
export type Trouble = {
  /** Whether the facilitator can't be reached, or asked callers to wait. It is then not used until a pause has passed. */
  rest: boolean;
  /** How many seconds the facilitator asked callers to wait, from 1 to 120. */
  seconds?: number;
  /** The facilitator gave an unusable answer: a status such as 500, or no JSON. A single payment may be the reason. */
  answered?: true;
};

export type VerifyResult =
  /** `moved`: the buyer has already sent the transfer, so the payment has been made. */
  | { kind: 'valid'; moved?: true }
  | { kind: 'refused'; reason: string }
  /** The facilitator could not be reached or gave no usable answer. `outage`: the buyer need not wait for it. */
  | { kind: 'unavailable'; detail: string; trouble?: Trouble; outage?: Required<Outage> };

/** The result of signing, before anything is sent. */
export type SignResult =
  /**
   * `transaction`: what will be sent; `signature`: the name under which it will be found. The ledger stores both before anything is sent.
   * `withdraw`: called if they were not stored and nothing is sent, which releases the reserved amounts. `movedAfter`: the buyer has
   * already sent the transfer, after this position; nothing need be sent.
   */
  | { kind: 'signed'; transaction: string; signature: string; withdraw?: () => void; movedAfter?: number }
  | { kind: 'refused'; reason: string }
  | { kind: 'unavailable'; detail: string }
  /** This payment needs no signature before settlement. */
  | { kind: 'not-needed' };

export type SettleResult =
  /** `signature` names the transfer. */
  | { kind: 'settled'; signature: string }
  /**
   * This request has not moved the money and will not move it. `mayHaveLanded`: another request may have, for instance if a proxy sent
   * this one twice.
   */
  | { kind: 'refused'; reason: string; mayHaveLanded?: true }
  /** Anything else: the money may have moved. */
  | { kind: 'unknown'; reason: string; signature: string; trouble?: Trouble };

/**
 * The rail's proof about a payment. `absent`: its money did not move and never will; `final` if no further check is needed. `unknown`:
 * neither is proven yet.
 */
export type Fate =
  | { kind: 'paid'; settlement: string }
  | { kind: 'absent'; why: string; final: boolean }
  | { kind: 'unknown' };

/** A transfer that the buyer already sent, found by its name. `not-seen`: it may still appear. */
export type Named = { kind: 'found'; evidence: string } | { kind: 'failed' } | { kind: 'not-seen' };

/** The result of one check for a payment. `not-seen` alone proves nothing: the payment may still land, or the server may be behind. */
export type Sighting = { kind: 'seen'; settlement: string } | { kind: 'not-seen' } | { kind: 'unclear' };

/** The source of a rail's hints for buyers. */
export interface Hinting<C extends Checked = Checked> {
  /** The hints for the challenge of a call without payment. Whenever a hint changes, a new object is returned. */
  hints(called?: Called): Hints;
  /** The hints for the challenge after a refusal. `fresh`: whether a new payment may use the refused one's hints. */
  hintsAfter(fresh: boolean, payment?: C): Hints;
}

/**
 * Moves money and proves where it is, for one network and one asset. A payment is always handed back to the rail that checked it. Amounts
 * are atomic units, durations ms unless noted otherwise. None of the methods throws; those that return a promise reject only where noted.
 */
export interface Rail<C extends Checked = Checked> {
  /** The name stored in the ledger. */
  readonly network: string;
  /** What the buyer must change to make a different payment; follows "sign a new one for this call, with". */
  readonly another: string;
  /**
   * Reads and checks a payment locally.
   * @param answered the values in the challenge that the payment answers, if its method knows them: the payment must have been signed
   *   with these
   */
  check(evidence: string, amount: bigint, answered?: Hints): Promise<Check<C>>;

  /**
   * The signed transaction of a transfer that the buyer already sent, in the form that `check` takes. Looks only once. Rejects if the
   * rail can't be read.
   */
  find(name: string, signal: AbortSignal): Promise<Named>;

  /** Records that a request with this payment has arrived. */
  arrived(payment: C): void;
  /** Records that the money of this payment moved or may have moved. */
  moved(payment: C): void;

  /** Undefined while the rail can't be read; then nothing is claimed. */
  position(): Position | undefined;
  /**
   * The hint that the payment was signed with, if this server does not offer that hint now. The ledger then decides whether the hint is
   * accepted.
   */
  formerHint(payment: C): ClaimRequest['hint'];
  /** The reason why a payment can't be claimed, if it was signed with a former hint that is not accepted. */
  unoffered(payment: C): string;
  /** The reason why the work for a payment should not begin: it may expire before it is settled. */
  tooOld(payment: C): Promise<string | undefined>;
  outage(payment: C): Outage | undefined;
  /** Whether the facilitator of this payment gave a usable answer the last time it was asked about a payment. */
  isHealthy(payment: C): boolean;

  /** Rejects like any failed request. */
  verify(payment: C, call: Called): Promise<VerifyResult>;
  /** Rejects like any failed request. */
  sign(payment: C, call: Called): Promise<SignResult>;
  /** Settles a payment, or its signed transaction. Rejects like any failed request: the money may have moved. */
  settle(payment: C, call: Called, signed?: string): Promise<SettleResult>;
  /** Whether a second settle request for an unresolved payment can be useful. */
  maySettleAgain(row: Row): boolean;
  /** Settles on the terms under which the payment was claimed. Rejects like `settle`. */
  settleAgain(row: Row): Promise<SettleResult>;
  /** The reason for a refusal, worded for the buyer. */
  explain(reason: string): string;

  /** Whether a reported settlement of this payment counts only once the rail shows it. */
  isDoubted(payment: C): boolean;
  /** Waits until the settlement of a payment is visible. False if it does not exist, failed, or did not become visible in time. */
  confirm(row: Row, settlement: string): Promise<boolean>;
  /**
   * Looks once for a payment that was refused because it would fail. It may have landed, because a payment that has landed is refused
   * for the same reason. May reject.
   */
  lookFor(row: Row): Promise<Sighting>;
  /** Starts a round of checks, which share their reads. Rejects if the ledger fails. */
  beginRound(): Promise<void>;
  /**
   * The outcome of a payment that is `settling`, was released, or is reported as settled. Rejects if the rail can't be read. A released
   * payment is `absent` only once a wrong answer can be excluded.
   */
  fate(row: Row, signal: AbortSignal): Promise<Fate>;
  /** The part of the evidence that is kept once a payment's outcome is final: what accounting and refunds need. */
  condense(row: Pick<Row, 'evidence'>): string;
  /**
   * Records that a reported settlement of this payment never happened. From then on, that facilitator's reports are checked. Rejects if
   * the ledger fails.
   */
  distrust(row: Row): Promise<void>;
}
