import { idBytes } from '../ids.js';
import { one, sql } from '../sql.js';
import type { PaymentRow } from '../schema.js';
import type { Id, IdRow } from './conditions.js';

export type EvidenceRow = Pick<PaymentRow, 'id' | 'signed_transaction' | 'audited_at'> & {
  settled_at: number;
};

/** Sales in their order, by its index. */
export const evidenceAfter = (p: { settled_at: number; id: string; limit: number }) =>
  sql<EvidenceRow>`
    select id, signed_transaction, settled_at, audited_at from payments
    where settled_at is not null and alias_of is null
      and settled_at >= ${p.settled_at} and (settled_at > ${p.settled_at} or id > ${idBytes(p.id)})
    order by settled_at, id limit ${p.limit}`;

export const setEvidence = (p: Id & Pick<PaymentRow, 'signed_transaction'>) =>
  one<IdRow>`update payments set signed_transaction = ${p.signed_transaction} where id = ${idBytes(p.id)} returning id`;
