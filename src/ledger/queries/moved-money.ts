import { idBytes } from '../ids.js';
import { raw, sql } from '../sql.js';
import type { PaymentRow, RefundRow, RepaymentRow } from '../schema.js';
import { SUM_OF_AMOUNTS } from './conditions.js';

/**
 * A page of a period: `from` is included and `to` is not. The page begins after the row `id` at the time
 * `at`.
 */
export type MovedWithin = { from: number; to: number; at: number; id: string; limit: number };

export type MovedSaleRow = Pick<
  PaymentRow,
  'id' | 'operation' | 'payer' | 'amount' | 'settlement' | 'signed_transaction'
> & { settled_at: number };

const IS_SALE = raw('settled_at is not null and alias_of is null');

/** The sales of a period, oldest first. Uses the index of sales. */
export const movedSales = (p: MovedWithin) =>
  sql<MovedSaleRow>`
    select id, operation, payer, amount, settlement, signed_transaction, settled_at from payments
    where ${IS_SALE} and settled_at >= ${Math.max(p.from, p.at)} and settled_at < ${p.to}
      and (settled_at > ${p.at} or id > ${idBytes(p.id)})
    order by settled_at, id limit ${p.limit}`;

export type MovedRefundRow = Pick<
  RepaymentRow,
  'id' | 'payment' | 'amount' | 'receiver' | 'evidence' | 'signature' | 'source'
> & { landed_at: number; operation: string };

/** The refunds of a period, oldest first. Uses the index of landed repayments. */
export const movedRefunds = (p: MovedWithin) =>
  sql<MovedRefundRow>`
    select repayments.id, payment, repayments.amount, receiver, evidence, signature, source, landed_at, operation
    from repayments join payments on payments.id = repayments.payment
    where landed_at is not null and landed_at >= ${Math.max(p.from, p.at)} and landed_at < ${p.to}
      and (landed_at > ${p.at} or repayments.id > ${p.id})
    order by landed_at, repayments.id limit ${p.limit}`;

export type FormerRefundRow = RefundRow & Pick<PaymentRow, 'payer' | 'operation'>;

/** Refunds that earlier versions recorded, without those that are also in `repayments`. */
export const formerRefunds = (p: { from: number; to: number }) =>
  sql<FormerRefundRow>`
    select refunds.payment, refunds.signature, refunds.amount, refunds.slot, refunded_at, payer, operation
    from refunds join payments on payments.id = refunds.payment
    where refunded_at >= ${p.from} and refunded_at < ${p.to}
      and not exists (select 1 from repayments where repayments.payment = refunds.payment and state = 'done')
    order by refunded_at, refunds.payment`;

export const soldBefore = (p: { before: number }) =>
  sql<{ amount: string }>`
    select ${SUM_OF_AMOUNTS} as amount from payments where ${IS_SALE} and settled_at < ${p.before}`;

export const refundedBetween = (p: { from: number; to: number }) =>
  sql<{ source: string | null; amount: string }>`
    select source, ${SUM_OF_AMOUNTS} as amount from repayments
    where landed_at is not null and landed_at >= ${p.from} and landed_at < ${p.to} group by source`;
