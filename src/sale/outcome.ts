import { NOT_CHARGED } from '../contract/not-charged.js';
import { isSoldStatus, type SoldStatus } from '../contract/sold-status.js';
import type { Caller, ClaimLimit, Payment as Row } from '../ledger/store.js';
import type { Fault } from '../net/failure.js';
import type { UsedUp } from '../admission/unsold-work.js';
import type { Receipt } from '../methods/method.js';
import type { Checked, Outage } from '../rails/rail.js';

type Bytes = { headers: Record<string, string>; body: Buffer };

/** The answer that is sold, as bytes, checked against the contract. */
export type Success = Bytes & { status: SoldStatus };

/** An answer that is not sold. `fault`: whose fault it is; by default the caller's for a 400, otherwise the backend's. */
export type Failure = Bytes & { status: 400 | 502 | 503; fault?: Fault };

/** The result of the work for a call. */
export type Answer = Success | Failure;

export function isSuccess(answer: Answer): answer is Success {
  return isSoldStatus(answer.status);
}

/**
 * Why a payment is refused:
 * - `unfit`: it is invalid, or does not match the offer.
 * - `used`: it was used for a call, or refused at settlement. The buyer must sign a different one.
 * - `outage`: the facilitator that settles it is down; another one may be up.
 * - `failed work`: the work for it failed too often. The buyer must sign a different one.
 */
type Because = 'unfit' | 'used' | 'outage' | 'failed work';

/**
 * Set if other lines in the operator's log report this outcome: those about the limit that turned the call away, or about the order that
 * the call waits for.
 */
type ReportedBy = { reportedBy?: 'limit' | 'order' };

type Sold = { kind: 'sold'; answer: Success; receipt: Receipt };

export type Unsold =
  /** The work failed: 400, 502 or 503. With a receipt if the money has moved. */
  | ({ kind: 'failed'; answer: Failure; receipt?: Receipt } & ReportedBy)
  /** 402. */
  | { kind: 'refused'; error: string; because: Because; receipt?: Receipt }
  /** 400: the body is invalid, or it is valid but its payment-identifier belongs to another call. */
  | { kind: 'invalid'; error: string; receipt?: undefined }
  /** 503. The same payment may be sent again. */
  | ({ kind: 'unavailable'; error: string; retryAfterSeconds: number; receipt?: Receipt } & ReportedBy);

/** The outcome of a payment, the same for all requests that wait for it. The type requires a receipt for a 200 of a paid operation. */
export type SharedOutcome = Sold | Unsold;

/** The call for which an answer was sold: the operation, and the hex sha256 of its input. */
type SoldCall = { operation: string; requestHash: string };

/**
 * The outcome for one request. Report to `sale` whether the answer was written out. `kept`: the row that has the answer, or will have it,
 * and the number of this request among its callers. The key made from them fetches the answer later.
 */
export type Outcome = ((Sold & { sale: Sale; call: SoldCall }) | Unsold) & { kept?: Caller };

/** An outcome of one kind. */
type Of<Kind extends Unsold['kind']> = Extract<Unsold, { kind: Kind }>;

/** A request whose answer is being written out. */
export type Sale = {
  /** To be called when the last byte has gone to an intact socket. */
  written(): void;
  /**
   * To be called before the caller is given a link instead of the answer. The answer is written when the caller fetches it. Resolves once
   * the ledger has recorded it, or after 5 s.
   * @returns until when the answer is kept (ms since 1970), if that is known
   */
  linked(): Promise<number | undefined>;
  /** To be called if the connection breaks before the answer is written out. Resolves once the ledger has recorded it, or after 5 s. */
  lost(): Promise<void>;
};

/** A payment, as shown on a receipt. `amount` in atomic units; `settlement` is the transfer's base58 signature, or empty. */
export type Paid = {
  payer: string;
  amount: bigint;
  settlement: string | null;
  /** How much was refunded, and the transaction of the latest refund. */
  repaid?: bigint;
  repaidBy?: string | null;
};

/**
 * Why nobody is currently working on an owed order. `seconds`: until its buyer can start the next attempt; undefined if only the operator
 * can start one.
 */
export type OrderPause = { error: string; seconds?: number };

export const MAX_RUNS = 3;

const ANSWER_LIFE_MS = 10 * 60_000;
const IDENTIFIED_ANSWER_LIFE_MS = 24 * 60 * 60_000;
const IDENTIFIED_ANSWER_BYTES = 256 * 1024;
const PAID_RETRY_SECONDS = 5;

/** How long the answer of an `authorization` operation is stored after delivery, by payment-identifier and size. */
export function answerLifeMs(identifier: string | null, bytes: number): number {
  return identifier !== null && bytes < IDENTIFIED_ANSWER_BYTES ? IDENTIFIED_ANSWER_LIFE_MS : ANSWER_LIFE_MS;
}

/** Whether a refused payment bought nothing, so that its buyer may sign again with the same blockhash. */
export function isUnused({ because }: Of<'refused'>): boolean {
  return because === 'unfit' || because === 'outage';
}

export function refused(error: string, because: Because = 'unfit'): Of<'refused'> {
  return { kind: 'refused', error, because };
}

export function unavailable(error: string, retryAfterSeconds: number): Of<'unavailable'> {
  return { kind: 'unavailable', error: `${error}.`, retryAfterSeconds };
}

export function inProgress(): Of<'unavailable'> {
  return unavailable('This payment is being worked on. Send the same payment again', 1);
}

export function failure(status: Failure['status'], error: string): Failure {
  return {
    status,
    headers: { 'Content-Type': 'application/json; charset=utf-8' },
    body: Buffer.from(JSON.stringify({ error })),
  };
}

export function failedToProcess(): Of<'unavailable'> {
  return unavailable('The payment could not be processed. Send the same payment again', 5);
}

/** The answer was delivered and has since expired. */
export function noLongerKept(): Of<'refused'> {
  return refused('this payment was used and its answer is no longer kept: sign a new one', 'used');
}

/** The facilitator of the payment is down, so no request was sent to it. */
export function facilitatorDown({ name, retryAfterSeconds, instead }: Outage): Of<'refused' | 'unavailable'> {
  const down = `The facilitator ${name} can't be reached. ${NOT_CHARGED}`;
  return instead === undefined
    ? unavailable(`${down}; send the same payment again`, retryAfterSeconds)
    : refused(`${down}; ${instead}`, 'outage');
}

/** The operator sells nothing to this wallet. Whatever it signs next is refused, too. */
export function blockedPayer(): Of<'refused'> {
  return refused(`payer: this shop sells nothing to this wallet. ${NOT_CHARGED}; do not pay again`);
}

export function tooManyNewPayers(): Of<'unavailable'> {
  return unavailable(`Too many new payers at once. ${NOT_CHARGED}; send the same payment again`, 2);
}

const UNSOLD: Record<UsedUp['whose'], string> = {
  payer:
    'Too many calls from this wallet ended without a sale (they were refused, failed or cancelled), or are still under way',
  source:
    'Too many calls from your address ended without a sale (they were refused, failed or cancelled), or are still under way',
  backend: 'Too many calls of this operation by new buyers ended without a sale in the last hour',
};

/** No work starts, because too much earlier work was not sold. */
export function tooMuchUnsoldWork({ whose, seconds }: UsedUp): Of<'unavailable'> {
  const error = `${UNSOLD[whose]}. ${NOT_CHARGED}; try again in ${seconds} s`;
  return { ...unavailable(error, seconds), reportedBy: 'limit' };
}

export function overLimit(reason: ClaimLimit): Of<'refused' | 'unavailable'> {
  if (reason === 'runs') {
    const error = `the work for this payment failed ${MAX_RUNS} times. ${NOT_CHARGED}; sign a new payment`;
    return refused(error, 'failed work');
  }
  if (reason === 'answers')
    return unavailable(`The store of paid answers is full. ${NOT_CHARGED}; try again later`, 30);
  if (reason === 'aliases') {
    return unavailable(
      `Too many new signatures for a call that was already paid for. ${NOT_CHARGED} again; send the payment that paid for it`,
      30,
    );
  }
  const what = reason === 'payments' ? 'Too many' : 'Too much money in';
  return unavailable(
    `${what} unsettled payments by this payer. ${NOT_CHARGED}; send the same payment again`,
    2,
  );
}

/** Paid, with the answer. */
export function sold(paid: Paid, answer: Success): Sold {
  return { kind: 'sold', answer, receipt: success(paid) };
}

/** Paid and delivered; its answer was fetched too many times in a short time. */
export function sentTooOften(paid: Paid, retryAfterSeconds: number): Of<'unavailable'> {
  const error =
    'Paid, and the answer was sent too many times in a short time. It is kept: send the same payment again later';
  return { ...unavailable(error, retryAfterSeconds), receipt: success(paid) };
}

/** Paid, but the work failed: the answer stays owed. */
export function failedOwed(paid: Paid): Of<'failed'> {
  const error =
    'The backend failed. This call is paid and stays owed: send the same payment again to try again';
  return { kind: 'failed', answer: failure(502, error), receipt: success(paid) };
}

/** Paid, but the work failed too often in a short time. */
export function owedTooOften(paid: Paid, { seconds }: UsedUp): Of<'unavailable'> {
  const error = `The backend failed too often. This call is paid and stays owed: send the same payment again in ${seconds} s`;
  return { ...unavailable(error, seconds), receipt: success(paid), reportedBy: 'limit' };
}

/** Paid, and the answer is still to come. Orders are worked on without a caller, other calls only while a request waits. */
export function stillOwed(row: Paid & Pick<Row, 'flow' | 'leased'>): Of<'unavailable'> {
  const isOrder = row.flow === 'upfront';
  const what = isOrder || row.leased ? 'Paid, and in progress' : 'Paid, but the answer must be made again';
  const outcome = {
    ...unavailable(`${what}: send the same payment again`, PAID_RETRY_SECONDS),
    receipt: success(row),
  };
  return isOrder ? { ...outcome, reportedBy: 'order' } : outcome;
}

/** Paid, and nobody is working on it: the next attempt is not due yet (503), or only the operator can start one (502). */
export function idleOrder(paid: Paid, { error, seconds }: OrderPause): Of<'failed' | 'unavailable'> {
  const known = { receipt: success(paid), reportedBy: 'order' } as const;
  if (seconds === undefined) return { kind: 'failed', answer: failure(502, `${error}.`), ...known };
  return { ...unavailable(error, Math.max(seconds, 1)), ...known };
}

/** The wording that replaces NOT_CHARGED for a payment whose transfer the buyer has already sent. */
const MOVED = 'Your transfer has moved the money, but has bought nothing yet';
/** The wording that replaces NOT_CHARGED for a payment that the buyer may have sent without this server. */
const UNSENT = 'This shop has not sent your payment: no money has moved, unless you have sent it yourself';

/** The parts of a payment that decide whether only the server can have moved its money. */
export type MovedBy = { moved?: boolean; checked?: Pick<Checked, 'selfPaid'> };

/** Whether a payment's money may have moved although it has bought nothing. */
export function mayHaveMoved({ moved, checked }: MovedBy): boolean {
  return moved === true || checked?.selfPaid === true;
}

/** If an outcome says that nothing was charged, adapts its wording to the payment. */
export function moneyIsWith<O extends SharedOutcome | Outcome>(payment: MovedBy, outcome: O): O {
  if (outcome.receipt || !mayHaveMoved(payment)) return outcome;
  if ('error' in outcome) return { ...outcome, error: movedIn(payment, outcome.error) };
  const body = Buffer.from(movedIn(payment, outcome.answer.body.toString('utf8')));
  return { ...outcome, answer: { ...outcome.answer, body } };
}

/** If a sentence says that nothing was charged, adapts its wording to the payment. */
export function movedIn(payment: MovedBy, sentence: string): string {
  if (!mayHaveMoved(payment)) return sentence;
  return sentence.replaceAll(NOT_CHARGED, payment.moved ? MOVED : UNSENT);
}

/** The money may have moved. */
export function pending(paid: Paid): Of<'unavailable'> {
  const error =
    'The settlement of this payment is not yet certain. Do not sign a new one: send the same payment again';
  return { ...unavailable(error, PAID_RETRY_SECONDS), receipt: failed(paid, 'settlement_pending') };
}

/** The facilitator refused to settle. The same message is never settled later, so the buyer must sign a different one. */
export function refusedSettlement(paid: Paid, error: string, reason: string): Of<'refused'> {
  return { ...refused(error, 'used'), receipt: failed(paid, reason) };
}

/** The operator paid the money back: the payment no longer buys anything, and its payment-identifier is free again. */
export function refunded(paid: Paid & { reason: string | null }): Of<'failed'> {
  const error = `This payment was refunded (${paid.reason ?? 'by the operator'}): sign a new one`;
  return { kind: 'failed', answer: failure(502, error), receipt: failed(paid, 'refunded') };
}

/** Whether an owed payment is being refunded in full, so that no work is done for it. */
export function isGoingBack({
  amount,
  repaid,
  repaying,
}: Pick<Row, 'amount' | 'repaid' | 'repaying'>): boolean {
  return repaying > 0n && repaid + repaying >= amount;
}

/** The operator is refunding an owed payment. The refund may still fail; then the work goes on. */
export function goingBack(paid: Paid): Of<'unavailable'> {
  const error =
    'Paid, and the money is being sent back. Do not sign a new one yet: send the same payment again to see whether it has arrived';
  return { ...unavailable(error, PAID_RETRY_SECONDS), receipt: success(paid) };
}

/** The payment was made, but it is not known for which call. It is too small for this one. */
export function paidLess(): Of<'refused'> {
  const error =
    'this payment paid for a cheaper call than this one: send the call that you paid for, or sign a new payment for this one';
  return refused(error, 'used');
}

/** The outcome for a caller whose wait has ended. */
export function unfinished(row: Row): Of<'unavailable'> {
  if (row.state === 'settling') return pending(row);
  return row.state === 'owed' ? stillOwed(row) : inProgress();
}

function success(paid: Paid): Receipt {
  const { payer, amount, settlement } = paid;
  const transaction = settlement ?? '';
  return { success: true, payer, transaction, amount: amount.toString(), ...repaidOf(paid) };
}

function failed(paid: Paid, errorReason: string): Receipt {
  const { payer, settlement } = paid;
  return { success: false, errorReason, payer, transaction: settlement ?? '', ...repaidOf(paid) };
}

function repaidOf({ repaid = 0n, repaidBy }: Paid): Pick<Receipt, 'refunded'> {
  return repaid > 0n ? { refunded: { amount: repaid.toString(), transaction: repaidBy ?? '' } } : {};
}
