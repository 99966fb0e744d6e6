import { statement } from './kysely.js';
import type { Kysely } from './kysely.js';
import type { Dialect } from './engine.js';
import type { ReplyRow, Tables } from './schema.js';

type Key = { payment: string };

/** The fixed queries of orders and their replies. */
export function orderStatements(db: Kysely<Tables>, dialect: Dialect) {
  return {
    order: statement(({ payment }: Key) =>
      db.selectFrom('orders').selectAll().where('payment', '=', payment),
    ),
    /** Whoever changes what belongs to an order holds its row until the commit. */
    orderToChange: statement(({ payment }: Key) =>
      db
        .selectFrom('orders')
        .selectAll()
        .where('payment', '=', payment)
        .$if(dialect.concurrentWriters, query => query.forUpdate()),
    ),
    openOrders: statement(({ limit }: { limit: number }) =>
      db
        .selectFrom('orders')
        .selectAll()
        // A crash between delivery and the end of the order leaves an order that nobody works on.
        .where(eb =>
          eb(
            'payment',
            'in',
            eb
              .selectFrom('payments')
              .select('id')
              .where('state', '=', 'owed')
              .where('decided_at', 'is', null),
          ),
        )
        .select(eb =>
          eb
            .selectFrom('replies')
            .select(count => count.fn.countAll<number>().as('replies'))
            .whereRef('replies.payment', '=', 'orders.payment')
            .where('rejected_at', 'is', null)
            .$asScalar()
            .$notNull()
            .as('replies'),
        )
        .where('finished_at', 'is', null)
        .orderBy('created_at')
        .orderBy('payment')
        .limit(limit),
    ),
    ...orderMoves(db),
    ...replyStatements(db),
  };
}

function orderMoves(db: Kysely<Tables>) {
  return {
    insertOrder: statement((p: Key & { request: string; wanted: number; deadline: number; now: number }) =>
      db
        .insertInto('orders')
        .values({
          payment: p.payment,
          request: p.request,
          wanted: p.wanted,
          deadline: p.deadline,
          attempts: 1,
          intent: null,
          created_at: p.now,
          finished_at: null,
        })
        .onConflict(conflict => conflict.doNothing()),
    ),
    finishOrder: statement((p: Key & { now: number }) =>
      db
        .updateTable('orders')
        .set({ finished_at: p.now })
        .where('payment', '=', p.payment)
        .where('finished_at', 'is', null)
        .returning('payment'),
    ),
    /** A worker that slept through its lease must not end the attempt of the next one. */
    finishAttempt: statement((p: Key & { attempt: number; now: number }) =>
      db
        .updateTable('orders')
        .set({ finished_at: p.now })
        .where('payment', '=', p.payment)
        .where('attempts', '=', p.attempt)
        .where('finished_at', 'is', null)
        .returning('payment'),
    ),
    reopenOrder: statement((p: Key & { deadline: number }) =>
      db
        .updateTable('orders')
        .set(eb => ({ attempts: eb('attempts', '+', 1), deadline: p.deadline, finished_at: null }))
        .where('payment', '=', p.payment)
        .where('finished_at', 'is not', null)
        .returningAll(),
    ),
    saveIntent: statement((p: Key & { intent: string }) =>
      db
        .updateTable('orders')
        .set({ intent: p.intent })
        .where('payment', '=', p.payment)
        .returning('payment'),
    ),
  };
}

function replyStatements(db: Kysely<Tables>) {
  return {
    /** All of them, rejected ones too. An order holds few. */
    everyReply: statement(({ payment }: Key) =>
      db
        .selectFrom('replies')
        .select(['reply', 'respondent', 'house', 'rejected_at', 'number'])
        .where('payment', '=', payment)
        .orderBy('number'),
    ),
    replies: statement(({ payment }: Key) =>
      db
        .selectFrom('replies')
        .selectAll()
        .where('payment', '=', payment)
        .where('rejected_at', 'is', null)
        .orderBy('number'),
    ),
    insertReply: statement((p: ReplyRow) =>
      db.insertInto('replies').values({
        payment: p.payment,
        reply: p.reply,
        number: p.number,
        text: p.text,
        sentiment: p.sentiment,
        respondent: p.respondent,
        inferred: p.inferred,
        house: p.house,
        created_at: p.created_at,
        rejected_at: null,
      }),
    ),
    removeReply: statement((p: Key & { reply: string }) =>
      db.deleteFrom('replies').where('payment', '=', p.payment).where('reply', '=', p.reply),
    ),
    rejectReply: statement((p: Key & { reply: string; now: number }) =>
      db
        .updateTable('replies')
        .set({ rejected_at: p.now })
        .where('payment', '=', p.payment)
        .where('reply', '=', p.reply)
        .where('rejected_at', 'is', null)
        .returning('reply'),
    ),
  };
}
