import type { Payment as Row } from '../ledger/store.js';
import {
  failure,
  refused,
  unavailable,
  type Failure,
  type Outcome,
  type Sale,
  type Success,
  type Unsold,
} from './outcome.js';
import type { OrderPause } from './order-worker.js';
import type { Receipt } from '../methods/method.js';

/** The outcome for all requests for one payment. `sale` records whether the answer was written out to one of them. */
export type SharedOutcome = (sale: Sale) => Outcome;

/** A payment as a receipt shows it. `amount` in atomic units; `settlement` is the transfer's base58 signature, or empty. */
export type Paid = { payer: string; amount: bigint; settlement: string | null };

const ORDER_RETRY_SECONDS = 5;
const PENDING_RETRY_SECONDS = 5;

export function sameForAll(outcome: Unsold): SharedOutcome {
  return () => outcome;
}

/** Paid, with the answer. */
export function sold(paid: Paid, answer: Success): SharedOutcome {
  return sale => ({ kind: 'answer', answer, receipt: success(paid), sale });
}

/** Paid and delivered, and asked for again too often. */
export function sentTooOften(paid: Paid, retryAfterSeconds: number): SharedOutcome {
  const outcome = unavailable(
    'Paid, and the answer was sent too often in a short time. It is kept: send the same payment again later',
    retryAfterSeconds,
  );
  return () => ({ ...outcome, receipt: success(paid) });
}

/** Paid, but the work failed: the answer stays owed. */
export function failedOwed(paid: Paid, error: string): SharedOutcome {
  const answer: Failure = failure(502, error);
  return () => ({ kind: 'answer', answer, receipt: success(paid) });
}

/** Paid, but the work failed too often in a short time. */
export function owedTooOften(paid: Paid, retryAfterSeconds: number): SharedOutcome {
  const outcome = unavailable(
    `The backend failed too often. This call is paid and stays owed: send the same payment again in ${retryAfterSeconds} s`,
    retryAfterSeconds,
  );
  return () => ({ ...outcome, receipt: success(paid), throttled: true });
}

/** Paid, and the answer is still to come. Orders are worked on by themselves, other calls only while a request asks for them. */
export function stillOwed(paid: Paid & Pick<Row, 'flow' | 'leased'>): SharedOutcome {
  const inProgress = paid.flow === 'upfront' || paid.leased;
  const what = inProgress ? 'Paid, and in progress' : 'Paid, but the answer must be made again';
  const outcome = unavailable(`${what}: send the same payment again`, ORDER_RETRY_SECONDS);
  const reported = paid.flow === 'upfront' ? { reported: true as const } : {};
  return () => ({ ...outcome, receipt: success(paid), ...reported });
}

/** Paid, and nobody works on it: the next attempt is not due yet (503), or only the operator can start one (502). */
export function idleOrder(paid: Paid, { error, seconds }: OrderPause): SharedOutcome {
  if (seconds === undefined) {
    const answer = failure(502, `${error}.`);
    return () => ({ kind: 'answer', answer, receipt: success(paid), reported: true });
  }
  const outcome = unavailable(error, Math.max(seconds, 1));
  return () => ({ ...outcome, receipt: success(paid), reported: true });
}

/** The money may have moved. */
export function pending(paid: Paid): SharedOutcome {
  const outcome = unavailable(
    'The settlement of this payment is not yet certain. Do not sign a new one: send the same payment again',
    PENDING_RETRY_SECONDS,
  );
  return () => ({ ...outcome, receipt: failed(paid, 'settlement_pending') });
}

/** The facilitator refused to settle. The same message is never settled later, so the buyer must sign a different one. */
export function refusedSettlement(paid: Paid, error: string, reason: string): SharedOutcome {
  return () => ({ ...refused(error, false), receipt: failed(paid, reason) });
}

/** The operator paid the money back: the payment buys nothing any more, and its payment-identifier is free again. */
export function refunded(paid: Paid & { reason: string | null }): SharedOutcome {
  const answer: Failure = failure(
    502,
    `This payment was refunded (${paid.reason ?? 'by the operator'}): sign a new one`,
  );
  return () => ({ kind: 'answer', answer, receipt: failed(paid, 'refunded') });
}

function success({ payer, amount, settlement }: Paid): Receipt {
  return { success: true, payer, transaction: settlement ?? '', amount: amount.toString() };
}

function failed({ payer, settlement }: Paid, errorReason: string): Receipt {
  return { success: false, errorReason, payer, transaction: settlement ?? '' };
}
