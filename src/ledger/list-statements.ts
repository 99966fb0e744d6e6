import type { SelectQueryBuilder } from 'kysely';
import { sql, statement } from './kysely.js';
import type { Kysely } from './kysely.js';
import type { PaymentRow, Tables } from './schema.js';
import type { State } from './states.js';

/** Null: any. Only payments whose lease had ended by `leased`, and that come after the one of `created_at` and `id`. */
type Listed = {
  state: State | null;
  payer: string | null;
  operation: string | null;
  leased: number;
  created_at: number;
  id: string;
  limit: number;
};

type Payments = SelectQueryBuilder<Tables, 'payments', PaymentRow>;

/** The queries of listings, whose conditions are many and are all there every time. */
export function listStatements(db: Kysely<Tables>) {
  const payments = db.selectFrom('payments').selectAll();
  // The state comes first: where payments are walked through, it rules out most of them.
  const all = (direction: 'asc' | 'desc') => (p: Listed) =>
    listed(
      payments.where(eb => eb('state', '=', eb.fn.coalesce(eb.val(p.state), 'state'))),
      p,
    )
      .orderBy('created_at', direction)
      .orderBy('id', direction);
  /** Uses the index of undecided payments: sorting those few is cheaper than walking through all payments in their order. */
  const undecided = (direction: 'asc' | 'desc') => (p: Listed & { state: State }) =>
    listed(payments.where('state', '=', p.state).where('decided_at', 'is', null), p)
      .orderBy(sql<number>`created_at + 0`, direction)
      .orderBy('id', direction);
  return {
    list: statement(all('asc')),
    listNewest: statement(all('desc')),
    listUndecided: statement(undecided('asc')),
    listUndecidedNewest: statement(undecided('desc')),
    /** The day of an open or released payment is that of its claim. */
    listBooked: statement((p: Listed & { from: number; to: number }) =>
      all('asc')(p).where(
        sql<boolean>`settling_at is not null and alias_of is null and created_at < ${p.to}
          and coalesce(settled_at, created_at) >= ${p.from} and coalesce(settled_at, created_at) < ${p.to}`,
      ),
    ),
  };
}

function listed(payments: Payments, p: Listed): Payments {
  return payments
    .where(eb => eb('payer', '=', eb.fn.coalesce(eb.val(p.payer), 'payer')))
    .where(eb => eb('operation', '=', eb.fn.coalesce(eb.val(p.operation), 'operation')))
    .where('lease_until', '<=', p.leased)
    .where('created_at', '>=', p.created_at)
    .where(eb => eb.or([eb('created_at', '>', p.created_at), eb('id', '>', p.id)]))
    .limit(p.limit);
}
