import type { PricedOperation } from '../contract/contract.js';
import type { ClaimRequest, Payment as Row } from '../ledger/store.js';
import type { Transport } from '../observe/observer.js';

/** A payment that its rail has read: its payer has signed it. Neither the ledger nor whoever settles it has seen it yet. */
export type Checked = {
  /** The payment's id: 64 hex digits, the same for each copy of it. */
  readonly id: string;
  /** Whose money moves. */
  readonly payer: string;
  /** What settles it and proves the outcome of its money, as text in the rail's own form. The ledger keeps it. */
  readonly evidence: string;
  /** Whether its payer can have it sent without the server, so that its money may move at any time, unseen. */
  readonly selfPaid?: boolean;
};

/** A payment that does not pay the price still has `checked`, because it may have been accepted at an earlier one. */
export type Check<C extends Checked = Checked> =
  { ok: true; checked: C } | { ok: false; error: string; checked?: C };

/** What buyers sign with beside price and receiver, and what changes while the server runs. Each rail has its own names. */
export type Hints = Readonly<Record<string, string>>;

/** What a payment is for, and how it was called. */
export type Called = { operation: PricedOperation; transport: Transport };

/** Where the rail stands when a payment is claimed, in numbers that never fall. Only the rail reads them. */
export type Position = Pick<ClaimRequest, 'after' | 'position'>;

/** The service that settles a payment is known not to answer. `instead`: what the buyer can do at once, if there is anything. */
export type Outage = { name: string; retryAfterSeconds: number; instead?: string };

/** A failure of whoever settles, not of one payment. */
export type Trouble = {
  /** It can't be connected to, or asked to wait: it is not asked again before it has rested. */
  rest: boolean;
  /** How long it asked to wait, from 1 to 120. */
  seconds?: number;
  /** It answered, but uselessly: with a status such as 500, or without JSON. A single payment may be the reason. */
  answered?: true;
};

export type VerifyResult =
  /** `moved`: its buyer has had the transfer made already, so that it is paid. */
  | { kind: 'valid'; moved?: true }
  | { kind: 'refused'; reason: string }
  /** Whoever verifies could not be reached or gave no usable answer. `outage`: the buyer need not wait for it. */
  | { kind: 'unavailable'; detail: string; trouble?: Trouble; outage?: Required<Outage> };

/** The answer of somebody who sends a payment on its way, before that is done. */
export type SignResult =
  /**
   * `transaction`: what will be sent; `signature`: the name under which it will be found. The ledger stores both before anything is sent.
   * `withdraw`: they were stored nowhere and nothing is sent, so that nothing need be set aside for it any more. `movedAfter`: its
   * buyer has had the transfer made already, after this position; nothing need be sent.
   */
  | { kind: 'signed'; transaction: string; signature: string; withdraw?: () => void; movedAfter?: number }
  | { kind: 'refused'; reason: string }
  | { kind: 'unavailable'; detail: string }
  /** This payment is signed when it is settled. */
  | { kind: 'not-needed' };

export type SettleResult =
  /** `signature` names the transfer. */
  | { kind: 'settled'; signature: string }
  /**
   * This request has not moved the money and will not. `mayHaveLanded`: another one may have, for instance if a proxy sent this request
   * twice.
   */
  | { kind: 'refused'; reason: string; mayHaveLanded?: true }
  /** Anything else: the money may have moved. */
  | { kind: 'unknown'; reason: string; signature: string; trouble?: Trouble };

/**
 * What the rail proves about a payment. `absent`: its money did not move and never will; `final` if nobody need look again. `unknown`:
 * neither is proven yet.
 */
export type Fate =
  | { kind: 'paid'; settlement: string }
  | { kind: 'absent'; why: string; final: boolean }
  | { kind: 'unknown' };

/** A transfer that its buyer had made, by the name that it gave. `not-seen`: it may be seen yet. */
export type Named = { kind: 'found'; evidence: string } | { kind: 'failed' } | { kind: 'not-seen' };

/** What one look for a payment finds. `not-seen` alone proves nothing: it may land yet, or whoever was asked may be behind. */
export type Sighting = { kind: 'seen'; settlement: string } | { kind: 'not-seen' } | { kind: 'unclear' };

/** What gives buyers the hints of a rail. */
export interface Hinting<C extends Checked = Checked> {
  /** For the challenge of a call without payment: another object whenever anything in it changes. */
  hints(called?: Called): Hints;
  /** For the challenge after a refusal. `fresh`: whether the buyer may sign with what the refused payment was signed with. */
  hintsAfter(fresh: boolean, payment?: C): Hints;
}

/**
 * What moves money and proves where it is: one network and one asset. A payment is always handed back to the rail that checked it. Amounts
 * are atomic units, durations ms unless noted otherwise. None of the methods throws; those that return a promise reject only where noted.
 */
export interface Rail<C extends Checked = Checked> {
  /** As the ledger writes it. */
  readonly network: string;
  /** What makes a payment another one, after "sign a new one for this call, with". */
  readonly another: string;
  /**
   * Reads and checks a payment locally.
   * @param answered what the challenge that it answers named, if its method knows that: it must have been signed with it
   */
  check(evidence: string, amount: bigint, answered?: Hints): Promise<Check<C>>;

  /** What a buyer signed that had the transfer made, as `check` takes it. Looks once. Rejects if the rail can't be read. */
  find(name: string, signal: AbortSignal): Promise<Named>;

  /** A request with this payment has come. */
  arrived(payment: C): void;
  /** Its money moved, or may have. */
  moved(payment: C): void;

  /** Undefined while the rail can't be read: nothing is claimed then. */
  position(): Position | undefined;
  /** The hint that the payment was signed with, unless this server offers it now: then the ledger decides whether it counts. */
  formerHint(payment: C): ClaimRequest['hint'];
  /** Why a payment whose former hint does not count can't be claimed. */
  unoffered(payment: C): string;
  /** Why the work for a payment should not begin: it may expire before it is settled. */
  tooOld(payment: C): Promise<string | undefined>;
  outage(payment: C): Outage | undefined;
  /** Whether whoever settles it gave a usable answer the last time it was asked about a payment. */
  isHealthy(payment: C): boolean;

  /** Rejects like any failed request. */
  verify(payment: C, call: Called): Promise<VerifyResult>;
  /** Rejects like any failed request. */
  sign(payment: C, call: Called): Promise<SignResult>;
  /** Settles a payment, or what was signed for it. Rejects like any failed request: the money may have moved. */
  settle(payment: C, call: Called, signed?: string): Promise<SettleResult>;
  /** Whether a second settle request for an unresolved payment can do any good. */
  maySettleAgain(row: Row): boolean;
  /** Settles on the terms under which the payment was claimed. Rejects as `settle`. */
  settleAgain(row: Row): Promise<SettleResult>;
  /** Why a payment was refused, for its buyer. */
  explain(reason: string): string;

  /** Whether a reported settlement of this payment counts only once it is seen. */
  isDoubted(payment: C): boolean;
  /** Waits until the settlement of a payment can be seen. False if it is not there, failed, or was not seen in time. */
  confirm(row: Row, settlement: string): Promise<boolean>;
  /** Looks once for a payment that was refused because it would fail, which is also what is said of one that has landed. May reject. */
  lookFor(row: Row): Promise<Sighting>;
  /** Begins a round of looks, which share what they read. Rejects if the ledger fails. */
  beginRound(): Promise<void>;
  /**
   * The outcome of a payment that is `settling`, was released, or is reported as settled. Rejects if the rail can't be read. `absent` is
   * said of a released payment only once no wrong answer can be the reason.
   */
  fate(row: Row, signal: AbortSignal): Promise<Fate>;
  /** What is to be kept of the evidence of a payment whose fate is final: what books and refunds read of it. */
  condense(row: Pick<Row, 'evidence'>): string;
  /** Its settlement was reported, and it never happened: no report of whoever said so is believed unseen. Rejects if the ledger fails. */
  distrust(row: Row): Promise<void>;
}
