import { idBytes } from '../ids.js';
import { one, raw, sql } from '../sql.js';
import type { PaymentRow, RepaymentRow } from '../schema.js';
import type { Id, IdRow } from './conditions.js';

/** `asked`: 1 if the ledger still has the request that the payment came with. */
export type RemovableRow = Pick<
  PaymentRow,
  | 'id'
  | 'state'
  | 'payer'
  | 'created_at'
  | 'settled_at'
  | 'audited_at'
  | 'answer_expires_at'
  | 'repaying'
  | 'request_id'
  | 'signed_transaction'
> & { asked: number };

const REMOVABLE =
  raw(`id, state, payer, created_at, settled_at, audited_at, answer_expires_at, repaying, request_id, signed_transaction,
    case when request is not null or exists (select 1 from orders where orders.payment = payments.id and orders.request <> '')
      then 1 else 0 end as asked`);

export type Place = { at: number; id: string };

/** The next payments in the order of their first claims. Uses the index of that order. */
export const claimedAfter = (p: Place & { before: number; limit: number }) =>
  sql<RemovableRow>`
    select ${REMOVABLE} from payments
    where created_at < ${p.before} and created_at >= ${p.at} and (created_at > ${p.at} or id > ${idBytes(p.id)})
    order by created_at, id limit ${p.limit}`;

/** The next sales to a payer in order of settlement. Uses the index of a payer's sales. */
export const soldAfter = (p: Place & { payer: string; limit: number }) =>
  sql<RemovableRow>`
    select ${REMOVABLE} from payments
    where payer = ${p.payer} and settled_at is not null and settled_at >= ${p.at}
      and (settled_at > ${p.at} or id > ${idBytes(p.id)})
    order by settled_at, id limit ${p.limit}`;

export const removeRequestId = ({ id }: Id) =>
  one<IdRow>`update payments set request_id = null where id = ${idBytes(id)} returning id`;

export const removePayer = (p: Id & Pick<PaymentRow, 'payer' | 'signed_transaction'>) =>
  one<IdRow>`
    update payments set payer = ${p.payer}, signed_transaction = ${p.signed_transaction}, request_id = null
    where id = ${idBytes(p.id)} returning id`;

/** The refunds of a payment that have ended. */
export const endedRepayments = ({ id }: Id) =>
  sql<Pick<RepaymentRow, 'id' | 'evidence' | 'signature'>>`
    select id, evidence, signature from repayments where payment = ${idBytes(id)} and decided_at is not null`;

export const removeReceiver = (p: Pick<RepaymentRow, 'id' | 'receiver' | 'evidence'>) =>
  one<{ id: string }>`
    update repayments set receiver = ${p.receiver}, evidence = ${p.evidence} where id = ${p.id} returning id`;

/** Deletes the record that a payer is known, once the ledger has no sales to that payer. */
export const dropPayer = ({ payer }: { payer: string }) =>
  sql`
    delete from payers where payer = ${payer}
      and not exists (select 1 from payments where payments.payer = ${payer} and settled_at is not null)`;
