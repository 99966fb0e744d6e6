import { NOT_CHARGED } from '../contract/not-charged.js';
import type { Caller, ClaimLimit } from '../ledger/store.js';
import type { Fault } from '../net/failure.js';
import type { UsedUp } from '../admission/unsold-work.js';
import type { Receipt } from '../methods/method.js';
import type { Outage } from '../rails/rail.js';

type Bytes = { headers: Record<string, string>; body: Buffer };

/** The answer that is sold, as bytes, checked against the contract. */
export type Success = Bytes & { status: 200 };

/** An answer that is not sold. `fault`: whose doing that is; by default the caller's if it is a 400, else the backend's. */
export type Failure = Bytes & { status: 400 | 502 | 503; fault?: Fault };

/** The result of the work of a call. */
export type Answer = Success | Failure;

/**
 * The outcome of a request. The type requires a receipt for a 200 of a paid operation. `kept`: the row that has the answer, or will have
 * it, and this request among its callers. With their key the answer can be fetched later.
 */
export type Outcome =
  /** Sold. `sale` must be told whether the answer was written out. */
  | { kind: 'answer'; answer: Success; receipt: Receipt; sale: Sale; kept?: Caller }
  /** A failure; with a receipt if the money has moved. `reported`: as in `Unavailable`. */
  | { kind: 'answer'; answer: Failure; receipt?: Receipt; kept?: Caller; reported?: true }
  /** 402. `fresh`: the buyer may sign again with what this payment was signed with. `ours`: it is no fault of the payment or its sender. */
  | { kind: 'refused'; error: string; fresh: boolean; receipt?: Receipt; ours?: true }
  /** 400: the body is invalid, or it is valid but its payment-identifier belongs to another call. */
  | { kind: 'invalid'; error: string }
  | Unavailable;

/**
 * 503. The same payment may be sent again. `throttled`: its source is over its limit, or too much work of its payer was not sold.
 * `reported`: the operator learns of it from what happens to its order, not from each call.
 */
type Unavailable = {
  kind: 'unavailable';
  error: string;
  retryAfterSeconds: number;
  receipt?: Receipt;
  kept?: Caller;
  throttled?: true;
  reported?: true;
};

/** Anything but a sold answer. */
export type Unsold = Exclude<Outcome, { sale: Sale }>;

/** A request whose answer is being written out. */
export type Sale = {
  /** To be called when the last byte has gone to an intact socket. */
  written(): void;
  /**
   * To be called before the caller is given a link in place of the answer, which is then written when it is fetched. Resolves once the
   * ledger has recorded it, or after 5 s. @returns until when the answer is kept (ms since 1970), if that is known
   */
  linked(): Promise<number | undefined>;
  /** To be called when the connection broke before that. Resolves once the ledger has recorded it, or after 5 s. */
  lost(): Promise<void>;
};

export const MAX_RUNS = 3;

const ANSWER_LIFE_MS = 10 * 60_000;
const IDENTIFIED_ANSWER_LIFE_MS = 24 * 60 * 60_000;
const IDENTIFIED_ANSWER_BYTES = 256 * 1024;

/** How long the answer of an `authorization` operation is stored after delivery, by payment-identifier and size. */
export function answerLifeMs(identifier: string | null, bytes: number): number {
  return identifier !== null && bytes < IDENTIFIED_ANSWER_BYTES ? IDENTIFIED_ANSWER_LIFE_MS : ANSWER_LIFE_MS;
}

export function refused(error: string, fresh = true): Outcome & { kind: 'refused' } {
  return { kind: 'refused', error, fresh };
}

export function unavailable(error: string, retryAfterSeconds: number): Outcome & { kind: 'unavailable' } {
  return { kind: 'unavailable', error: `${error}.`, retryAfterSeconds };
}

export function inProgress(): Outcome & { kind: 'unavailable' } {
  return unavailable('This payment is being worked on. Send the same payment again', 1);
}

export function failure(status: Failure['status'], error: string): Failure {
  return {
    status,
    headers: { 'Content-Type': 'application/json; charset=utf-8' },
    body: Buffer.from(JSON.stringify({ error })),
  };
}

export function failedToProcess(): Outcome & { kind: 'unavailable' } {
  return unavailable('The payment could not be processed. Send the same payment again', 5);
}

/** Whoever settles the payment is down, and was not asked. */
export function facilitatorDown({
  name,
  retryAfterSeconds,
  instead,
}: Outage): Outcome & { kind: 'refused' | 'unavailable' } {
  const down = `The facilitator ${name} can't be reached. ${NOT_CHARGED}`;
  return instead === undefined
    ? unavailable(`${down}; send the same payment again`, retryAfterSeconds)
    : { ...refused(`${down}; ${instead}`), ours: true };
}

export function tooManyNewPayers(): Outcome & { kind: 'unavailable' } {
  return unavailable(`Too many new payers at once. ${NOT_CHARGED}; send the same payment again`, 2);
}

const UNSOLD: Record<UsedUp['whose'], string> = {
  payer:
    'Too many calls of this wallet ended without a sale (they were refused, failed or cancelled), or are still under way',
  source:
    'Too many calls from your address ended without a sale (they were refused, failed or cancelled), or are still under way',
  backend: 'Too many calls of this operation by all new buyers ended without a sale in the last hour',
};

/** No work starts: too much was done that was not sold. */
export function tooMuchUnsoldWork({ whose, seconds }: UsedUp): Outcome & { kind: 'unavailable' } {
  const error = `${UNSOLD[whose]}. ${NOT_CHARGED}; try again in ${seconds} s`;
  return { ...unavailable(error, seconds), throttled: true };
}

export function overLimit(reason: ClaimLimit): Unsold {
  if (reason === 'runs') {
    const error = `the work for this payment failed ${MAX_RUNS} times and nothing was charged: sign a new payment`;
    return { ...refused(error, false), ours: true };
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
    `${what} unsettled payments of this payer. ${NOT_CHARGED}; send the same payment again`,
    2,
  );
}
