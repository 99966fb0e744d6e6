import { idBytes } from '../ids.js';
import type { Dialect } from '../engine.js';
import { list, raw, sql } from '../sql.js';
import type { Query } from '../sql.js';
import type { PaymentRow } from '../schema.js';
import type { Id } from './conditions.js';

export type EvidenceRow = Pick<PaymentRow, 'id' | 'signed_transaction' | 'audited_at'> & {
  settled_at: number;
};

/** The next sales in order of settlement. Uses the index of sales. */
export const evidenceAfter = (p: { settled_at: number; id: string; limit: number }) =>
  sql<EvidenceRow>`
    select id, signed_transaction, settled_at, audited_at from payments
    where settled_at is not null and alias_of is null
      and settled_at >= ${p.settled_at} and (settled_at > ${p.settled_at} or id > ${idBytes(p.id)})
    order by settled_at, id limit ${p.limit}`;

type Kept = Id & Pick<PaymentRow, 'signed_transaction'>;

/** `rows` must not be empty. `slow` keeps PostgreSQL from caching a plan for every number of rows. */
export const setEvidence = (rows: readonly Kept[], { bytes }: Dialect): Query => {
  const values = rows.map(row => sql`(cast(${idBytes(row.id)} as ${raw(bytes)}), ${row.signed_transaction})`);
  return {
    ...sql`
      with kept (id, evidence) as (values ${list(values)})
      update payments set signed_transaction = kept.evidence from kept where payments.id = kept.id`,
    slow: true,
  };
};
