import { one } from '../sql.js';
import type { RefundRow } from '../schema.js';
import type { Id } from './conditions.js';

/** Nothing where the payment or the signature has a refund already. */
export const insertRefund = (p: RefundRow) =>
  one<{ payment: string }>`
    insert into refunds (payment, signature, amount, slot, refunded_at)
    values (${p.payment}, ${p.signature}, ${p.amount}, ${p.slot}, ${p.refunded_at})
    on conflict do nothing returning payment`;

export const findRefund = ({ id }: Id) => one<RefundRow>`select * from refunds where payment = ${id}`;
