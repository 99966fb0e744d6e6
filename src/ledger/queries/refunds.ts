import { idBytes } from '../ids.js';
import { one } from '../sql.js';
import type { RefundRow } from '../schema.js';
import type { Id } from './conditions.js';

/** Inserts nothing if the payment already has a refund or the signature already belongs to one. */
export const insertRefund = (p: Omit<RefundRow, 'payment'> & { payment: string }) =>
  one<Pick<RefundRow, 'payment'>>`
    insert into refunds (payment, signature, amount, slot, refunded_at)
    values (${idBytes(p.payment)}, ${p.signature}, ${p.amount}, ${p.slot}, ${p.refunded_at})
    on conflict do nothing returning payment`;

export const findRefund = ({ id }: Id) =>
  one<RefundRow>`select * from refunds where payment = ${idBytes(id)}`;
