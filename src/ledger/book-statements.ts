import { sql, statement } from './kysely.js';
import type { Kysely } from './kysely.js';
import type { Tables } from './schema.js';

export const sumOfAmounts = sql<string>`cast(coalesce(sum(cast(amount as bigint)), 0) as text)`;

type Id = { id: string };

/** What the operator's books are made of. */
export function bookStatements(db: Kysely<Tables>) {
  return {
    counts: statement((_: object) =>
      db
        .selectFrom('payments')
        .select(eb => ['state', eb.fn.countAll<number>().as('payments'), sumOfAmounts.as('amount')])
        .where('alias_of', 'is', null)
        .groupBy('state'),
    ),
    /** What was settled, by the UTC day on which the money was known to have moved. */
    turnover: statement((_: object) =>
      db
        .selectFrom('payments')
        .select(eb => [
          sql<number>`settled_at / 86400000`.as('day'),
          'operation',
          'state',
          eb.fn.countAll<number>().as('payments'),
          sumOfAmounts.as('amount'),
        ])
        .where('settled_at', 'is not', null)
        .where('alias_of', 'is', null)
        .groupBy([sql`settled_at / 86400000`, 'operation', 'state'])
        .orderBy('day')
        .orderBy('operation')
        .orderBy('state'),
    ),
    /** Ids are lower-case hex, and 'g' sorts after every hex digit. */
    startingWith: statement((p: { prefix: string; end: string }) =>
      db
        .selectFrom('payments')
        .selectAll()
        .where('id', '>=', p.prefix)
        .where('id', '<', p.end)
        .orderBy('id')
        .limit(2),
    ),
    answerFacts: statement(({ id }: Id) =>
      db.selectFrom('answers').select(['status', 'size', 'saved_at']).where('payment', '=', id),
    ),
    firstSlot: statement((_: object) =>
      db.selectFrom('payments').select(eb => eb.fn.min('claim_slot').as('slot')),
    ),
  };
}

export function metaStatements(db: Kysely<Tables>) {
  return {
    /** What the ledger notes about itself. */
    ownMeta: statement((_: object) =>
      db
        .selectFrom('meta')
        .selectAll()
        .where('key', 'in', ['schema', 'pay_to', 'network', 'retired', 'arriving']),
    ),
    identity: statement((_: object) =>
      db.selectFrom('meta').selectAll().where('key', 'in', ['pay_to', 'network', 'retired']),
    ),
    getMeta: statement(({ key }: { key: string }) =>
      db.selectFrom('meta').select('value').where('key', '=', key),
    ),
    setMeta: statement((p: { key: string; value: string }) =>
      db
        .insertInto('meta')
        .values({ key: p.key, value: p.value })
        .onConflict(conflict =>
          conflict.column('key').doUpdateSet(eb => ({ value: eb.ref('excluded.value') })),
        ),
    ),
  };
}
