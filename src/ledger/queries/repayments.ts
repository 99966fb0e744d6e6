import { idBytes } from '../ids.js';
import { one, sql } from '../sql.js';
import type { PaymentRow, RepaymentRow } from '../schema.js';
import type { At, Id, IdRow } from './conditions.js';

type NewRepayment = Pick<
  RepaymentRow,
  'id' | 'amount' | 'receiver' | 'way' | 'state' | 'cause' | 'reason' | 'after'
> & { payment: string };

export const insertRepayment = (p: NewRepayment & At) =>
  one<RepaymentRow>`
    insert into repayments (id, payment, amount, receiver, way, state, cause, reason, after, created_at)
    values (${p.id}, ${idBytes(p.payment)}, ${p.amount}, ${p.receiver}, ${p.way}, ${p.state}, ${p.cause}, ${p.reason}, ${p.after}, ${p.now})
    returning *`;

export const findRepayment = ({ id }: Id) => one<RepaymentRow>`select * from repayments where id = ${id}`;

export const findRepaymentToChange = ({ id }: Id) =>
  one<RepaymentRow>`select * from repayments where id = ${id} for update`;

export const repaymentsOf = ({ id }: Id) =>
  sql<RepaymentRow>`select * from repayments where payment = ${idBytes(id)} order by created_at, id limit 1000`;

export const repaymentBy = (p: { signature: string }) =>
  one<RepaymentRow>`select * from repayments where signature = ${p.signature}`;

/** The full refund made by a transaction, in the table that earlier versions use. This version also writes full refunds to it. */
export const refundBy = (p: { signature: string }) =>
  one<{ payment: PaymentRow['id'] }>`select payment from refunds where signature = ${p.signature}`;

/** Undecided repayments, oldest first. */
export const openRepayments = (p: { created_at: number; id: string; limit: number }) =>
  sql<RepaymentRow>`
    select * from repayments
    where decided_at is null and created_at >= ${p.created_at} and (created_at > ${p.created_at} or id > ${p.id})
    order by created_at, id limit ${p.limit}`;

/**
 * Stores a signed transaction, unless one is stored already. The server that comes second sends the stored
 * one.
 */
export const writeDownRepayment = (p: Id & { evidence: string; signature: string; position: number }) =>
  one<RepaymentRow>`
    update repayments set evidence = ${p.evidence}, signature = ${p.signature}, position = ${p.position}
    where id = ${p.id} and state = 'sending' and signature is null and decided_at is null returning *`;

export const landRepayment = (
  p: Id & At & { signature: string; slot: number; landed_at: number; source: string },
) =>
  one<RepaymentRow>`
    update repayments set state = 'done', signature = ${p.signature}, slot = ${p.slot}, landed_at = ${p.landed_at},
      source = ${p.source}, decided_at = ${p.now}, failure = null
    where id = ${p.id} and state <> 'done' returning *`;

/** @param p.signature the transaction that was proven never to land; null if nothing was signed */
export const endRepayment = (
  p: Id & At & { state: 'failed' | 'cancelled'; signature: string | null; failure: string },
) =>
  one<RepaymentRow>`
    update repayments set state = ${p.state}, decided_at = ${p.now}, failure = ${p.failure}
    where id = ${p.id} and decided_at is null and coalesce(signature, '') = ${p.signature ?? ''} returning *`;

export const setRepaid = (p: Id & { repaid: string; repaying: string; repaid_by: string | null }) =>
  one<IdRow>`
    update payments set repaid = ${p.repaid}, repaying = ${p.repaying}, repaid_by = ${p.repaid_by}
    where id = ${idBytes(p.id)} returning id`;

/** Ends the lease of the server that works on an owed payment, and increases the claim number, so that it can't store its result. */
export const fenceOff = ({ id }: Id) =>
  one<IdRow>`
    update payments set claim = claim + 1, lease_until = 0 where id = ${idBytes(id)} and state = 'owed' returning id`;

/** The sum of the refunds with this cause that were started in the last `ms` and have not failed, in atomic units. */
export const repaidWithin = (p: At & { ms: number; cause: string }) =>
  one<{ amount: string }>`
    select cast(coalesce(sum(cast(amount as bigint)), 0) as text) as amount from repayments
    where cause = ${p.cause} and created_at > ${p.now} - ${p.ms} and state in ('asked', 'sending', 'done')`;
