import type { PricedOperation } from '../contract/contract.js';
import type { Answered, Observer } from '../observe/observer.js';
import type { Failure, Outcome, Success } from '../sale/outcome.js';
import { Halt } from './responses.js';
import type { BudgetOwner } from './byte-budget.js';
import type { Payment } from '../sale/check-payment.js';

/**
 * `unpaid`: the call has no payment; `why` says why it is not free, if the operation has free calls.
 * `rejected`: the payment can't be read or is for another offer, and nothing was sold for it (402).
 * `throttled`: the call is one of these two, but its source is over its limit (503).
 */
export type PaidCallResult =
  | ({ kind: 'unpaid'; why?: string } & Quoted)
  /** A free call: `left` is how many free calls its caller has left. */
  | { kind: 'given'; answer: Success; owner: BudgetOwner; left: number }
  | Throttled
  /** The price of the call, or whether it was paid, cannot be determined. */
  | { kind: 'unpriced'; answer: Failure }
  | ({ kind: 'rejected'; error: string } & Quoted)
  | ({ kind: 'charged'; payment: Payment; owner: BudgetOwner; outcome: Outcome } & Quoted);

/** The operation at the price of this call. */
type Quoted = { operation: PricedOperation };

export type Throttled = { kind: 'throttled'; error: string; retryAfterSeconds: number };

/** The facts about a request that are known before it is served. */
export type Asked = Pick<Answered, 'operation' | 'transport' | 'requestId' | 'amount' | 'spent'>;

const UNREAD = { payment: undefined, payer: undefined, paid: false };

/**
 * Runs a request with a payment, and reports how it was answered. `SourceLimits` reports the calls that a
 * limit turns away.
 */
export async function told(
  observer: Observer,
  asked: Asked,
  serve: () => Promise<PaidCallResult>,
): Promise<PaidCallResult> {
  const began = performance.now();
  const tell = (
    answer: Pick<Answered, 'status' | 'error' | 'payment' | 'payer' | 'paid' | 'reported'> &
      Partial<Answered>,
  ): void => observer.tell({ kind: 'answered', ...asked, ...answer, ms: performance.now() - began });
  try {
    const result = await serve();
    if (result.kind === 'throttled') return result;
    if (result.kind === 'given') {
      observer.tell({ kind: 'given', operation: asked.operation, status: result.answer.status });
      return result;
    }
    if (result.kind === 'unpriced') {
      tell({ ...UNREAD, status: result.answer.status, error: errorOf(result.answer) });
      return result;
    }
    if (result.kind === 'unpaid') observer.unpaid(asked.operation);
    else if (result.kind === 'rejected')
      tell({ ...UNREAD, amount: amountOf(result), status: 402, error: result.error });
    else if (reporterOf(result.outcome) !== 'limit') {
      const { id: payment, payer } = result.payment.checked;
      const reported = reporterOf(result.outcome) === 'order' ? { reported: true } : {};
      tell({ payment, payer, amount: amountOf(result), ...answerOf(result.outcome), ...reported });
    }
    return result;
  } catch (error) {
    const known = error instanceof Halt;
    tell({ ...UNREAD, status: known ? error.status : 502, error: known ? error.message : 'internal error' });
    throw error;
  }
}

const amountOf = ({ operation }: Quoted): bigint => operation.price.atomic;

const reporterOf = (outcome: Outcome): 'limit' | 'order' | undefined =>
  'reportedBy' in outcome ? outcome.reportedBy : undefined;

const errorOf = ({ body }: Failure): string => (JSON.parse(body.toString('utf8')) as { error: string }).error;

function answerOf(outcome: Outcome): Pick<Answered, 'status' | 'error' | 'paid'> {
  const paid = outcome.receipt?.success === true;
  switch (outcome.kind) {
    case 'sold':
      return { status: outcome.answer.status, error: undefined, paid };
    case 'failed': {
      return { status: outcome.answer.status, error: errorOf(outcome.answer), paid };
    }
    case 'refused':
      return { status: 402, error: outcome.error, paid };
    case 'invalid':
      return { status: 400, error: outcome.error, paid };
    case 'unavailable':
      return { status: 503, error: outcome.error, paid };
  }
}
