import { NOT_CHARGED } from '../contract/not-charged.js';
import { FOUND_ON_CHAIN, type Payment as Row, type PaymentLookup } from '../ledger/store.js';
import { goingBack, isGoingBack, noLongerKept, refunded, refused, type Unsold } from './outcome.js';

/** The parts of a call that decide what a payment buys for it. */
export type RequestedCall = {
  operation: string;
  requestHash: string;
  identifier: string | null;
  /** The id of the challenge that the payment answers. It identifies a payment whose transfer was sent before the request. */
  challenge?: string | undefined;
  /** What the buyer must change so that its next payment is a different one (see `Rail`). */
  another: string;
};

/**
 * The next step for a request with a payment:
 * - `sell`: nothing was sold for the payment; the current offer decides.
 * - `wait`: a worker holds the row. `ask`: the settlement is unresolved. `order`: the payment is paid and its order is in progress. `redo`: it is
 *   paid, and its work must be repeated. `answer`: its answer is stored. `found`: it is paid, but the ledger does not know for which call.
 * - `over`: the outcome is final. `row` is the payment whose answer is redeemed. `proven`: the request presented another payment of the same payer,
 *   so it comes from that payer.
 *
 */
export type NextStep =
  | { kind: 'sell' }
  | { kind: 'wait' | 'ask' | 'order' | 'redo' | 'answer' | 'found'; row: Row; proven: boolean }
  | { kind: 'over'; outcome: Unsold };

/** Decides the next step from the ledger's row, before the current offer is considered. `now` in ms since 1970. */
export function nextStep(
  { row, target }: Pick<PaymentLookup, 'row' | 'target'>,
  asked: RequestedCall,
  now: number,
): NextStep {
  if (!row || (row.state === 'claimed' && row.aliasOf === null && !row.leased)) return { kind: 'sell' };
  if (row.operation === FOUND_ON_CHAIN)
    return row.state === 'owed' ? { kind: 'found', row, proven: false } : next(row, false, now);
  if (!isSameCall(row, asked)) return over(otherCall(asked, row.operation));
  if (row.identifier !== null && ![asked.identifier, asked.challenge].includes(row.identifier)) {
    return over(
      refused('this payment carried a payment-identifier and is redeemed only with that same id', 'used'),
    );
  }
  const sold = row.aliasOf === null ? row : target;
  return sold ? next(sold, sold !== row, now) : over(noLongerKept());
}

/** The next step for a payment whose payment-identifier its payer has already used for another payment, the one in `row`. */
export function nextStepForIdentifier(row: Row, asked: RequestedCall, now: number): NextStep {
  if (!isSameCall(row, asked)) {
    return conflict(`This payment-identifier was used for another call. ${NOT_CHARGED}; use a new id`);
  }
  if (isExpired(row, now)) {
    return conflict(
      `This payment-identifier was used and its answer is no longer kept. ${NOT_CHARGED}; use a new id`,
    );
  }
  return next(row, true, now);
}

function next(row: Row, proven: boolean, now: number): NextStep {
  switch (row.state) {
    case 'claimed':
      return { kind: 'wait', row, proven };
    case 'settling':
      return { kind: row.leased ? 'wait' : 'ask', row, proven };
    case 'owed':
      if (isGoingBack(row)) return over(goingBack(row));
      return { kind: row.flow === 'upfront' ? 'order' : row.leased ? 'wait' : 'redo', row, proven };
    case 'delivered':
      return isExpired(row, now) ? over(noLongerKept()) : { kind: 'answer', row, proven };
    case 'released':
      return over(
        refused(
          `this payment was refused when it was settled (${row.reason ?? 'no reason given'}): sign a new one`,
          'used',
        ),
      );
    case 'refunded':
      return over(refunded(row));
  }
}

/**
 * A sentence about the money for a buyer who sent an invalid body, so that the call is unknown. It states only what the ledger knows
 * about the money.
 */
export function moneyNote(row: Row | undefined): string {
  if (!row || (row.state === 'claimed' && row.aliasOf === null)) {
    return `${NOT_CHARGED}; correct the body and send it with the same payment.`;
  }
  if (row.state === 'released') return `${NOT_CHARGED}; correct the body and sign a new payment.`;
  if (row.state === 'settling') {
    return 'This payment is being settled for an earlier call: send that call again, or sign a new payment for this one.';
  }
  return 'This payment was used for an earlier call: send that call again, or sign a new payment for this one.';
}

function isSameCall(row: Row, asked: RequestedCall): boolean {
  return row.operation === asked.operation && row.requestHash === asked.requestHash;
}

/** A pruned answer no longer has an expiry date. */
function isExpired(row: Row, now: number): boolean {
  return row.state === 'delivered' && (row.answerExpiresAt ?? 0) <= now;
}

function otherCall(asked: RequestedCall, operation: string): Unsold {
  const what = operation === asked.operation ? 'with another body' : `of ${operation}`;
  return refused(
    `the same transaction was sent for another call, ${what}: sign a new one for this call, with ${asked.another}`,
    'used',
  );
}

function conflict(error: string): NextStep {
  return over({ kind: 'invalid', error });
}

function over(outcome: Unsold): NextStep {
  return { kind: 'over', outcome };
}
