import type { Ledger, Order, Payment, Refund, Repayment } from '../ledger/store.js';

/** A payment and its related data. */
export type PaymentFacts = {
  payment: Payment;
  order: Order | undefined;
  /** The time (ms since 1970) until which interrupted work is paused; undefined if it is not paused. */
  pausedUntil: number | undefined;
  refund: Refund | undefined;
  /** Oldest first. */
  repayments: Repayment[];
  answer: { status: number; bytes: number; savedAt: number } | undefined;
};

/** Undefined if there is no such payment. `now` in ms since 1970. Rejects with a LedgerFault if the ledger cannot be read. */
export async function paymentFacts(
  ledger: Ledger,
  id: string,
  now: number,
): Promise<PaymentFacts | undefined> {
  const payment = /^[0-9a-f]{64}$/.test(id) ? await ledger.find(id) : undefined;
  if (!payment) return undefined;
  const order = await ledger.order(id);
  return {
    payment,
    order,
    pausedUntil: pausedUntil(payment, order, now),
    refund: await ledger.refundOf(id),
    repayments: await ledger.repaymentsOf(id),
    answer: await ledger.answerFacts(id),
  };
}

/** The time (ms since 1970) until which interrupted work is paused; undefined if it is not paused. */
export function pausedUntil({ leased }: Payment, order: Order | undefined, now: number): number | undefined {
  if (!order || order.finishedAt !== null || leased) return undefined;
  const next = order.nextAttemptAt ?? 0;
  return next > now ? next : undefined;
}

type OrderFacts = Pick<PaymentFacts, 'payment' | 'order' | 'pausedUntil'>;

/** Whether the operator has rejected an order. Its request has then been deleted, so it can no longer be worked on. */
export function isRejected({ order }: Pick<PaymentFacts, 'order'>): boolean {
  return order?.request === '';
}

/** An order past its deadline needs attention, even while work on it is under way. */
export const isInTime = ({ deadline }: Order, now: number): boolean => deadline > now;

/** Whether the server is working on the answer of an owed payment and the deadline has not passed. */
export function isInProgress(
  { order, payment }: Pick<PaymentFacts, 'order' | 'payment'>,
  now: number,
): boolean {
  return payment.state === 'owed' && order?.finishedAt === null && isInTime(order, now);
}

/** Whether another attempt at the work can be started here. */
export function mayRetry({ payment, order, pausedUntil }: OrderFacts): boolean {
  const idle =
    order !== undefined && !isRejected({ order }) && (order.finishedAt !== null || pausedUntil !== undefined);
  return payment.state === 'owed' && payment.flow === 'upfront' && idle;
}

/** Whether the work of an order can still be changed: until an answer is saved or delivered. */
export function mayChange({ payment, order, answer }: PaymentFacts): boolean {
  return payment.state === 'owed' && order !== undefined && !isRejected({ order }) && answer === undefined;
}
