import type { Kysely } from 'kysely';
import type { Connection } from './books.js';
import { ask, statement } from './engine.js';
import type { Dialect, Operation } from './engine.js';
import { LedgerFault } from './fault.js';
import type { OrderRow, ReplyRow, Tables } from './schema.js';
import type { Statements } from './statements.js';

const MAX_OPEN = 1_000;

/** Work that was paid for before it was done. Times are milliseconds since 1970. */
export type Order = {
  /** Id of the payment that bought it. */
  readonly payment: string;
  /** Canonical JSON of the request. */
  readonly request: string;
  /** How many replies were paid for. */
  readonly wanted: number;
  /** When the attempt ends. */
  readonly deadline: number;
  /** 1 for the first attempt. */
  readonly attempts: number;
  /** What was, or is about to be, asked of an external provider. */
  readonly intent: string | null;
  readonly createdAt: number;
  /** When the last attempt ended, delivered or failed; null while it is worked on. */
  readonly finishedAt: number | null;
};

export type Reply = {
  /** Unique within its order. */
  id: string;
  text: string;
  sentiment: 'positive' | 'neutral' | 'negative';
  /** Who wrote it: opaque, one reply per respondent and order. */
  respondent: string;
  /** The sentiment was inferred from the text. */
  inferred: boolean;
  /** A house respondent wrote it, not a person. */
  house: boolean;
};

/** All of them reject with a LedgerFault when the database fails. */
export type Orders = {
  /**
   * Creates the order of a payment that is owed, as its first attempt, or returns the one that exists.
   * @throws LedgerFault `failed` when there is neither an order nor an owed payment
   */
  readonly openOrder: (order: {
    payment: string;
    request: string;
    wanted: number;
    deadline: number;
  }) => Promise<Order>;
  readonly order: (payment: string) => Promise<Order | undefined>;
  /** This attempt ended, delivered or failed. @returns false when it had ended before, or is another than the one named */
  readonly finishOrder: (payment: string, attempt?: number) => Promise<boolean>;
  /** Begins another attempt. @returns undefined unless the last one ended and the payment is still owed */
  readonly reopenOrder: (payment: string, deadline: number) => Promise<Order | undefined>;
  /** Orders that are worked on, the oldest first, at most 1 000, with the number of replies that count. */
  readonly openOrders: () => Promise<(Order & { replies: number })[]>;
  /** The replies that count, the oldest first. */
  readonly replies: (payment: string) => Promise<Reply[]>;
  /**
   * Adds one reply while the order is worked on: one per respondent (even if that one was rejected), one per reply id,
   * never more than wanted. In a full order a person's reply takes the place of the newest house reply.
   */
  readonly addReply: (payment: string, reply: Reply) => Promise<'added' | 'duplicate' | 'full' | 'closed'>;
  /** Its place is free again, its respondent can't reply again. @returns false when no such reply counts */
  readonly rejectReply: (payment: string, replyId: string) => Promise<boolean>;
  /** Resolves when it is on disk. @throws LedgerFault `failed` when there is no such order */
  readonly saveIntent: (payment: string, intent: string) => Promise<void>;
  readonly intent: (payment: string) => Promise<string | null>;
};

export function ordersOf({ engine, statements, now }: Connection): Orders {
  const order = async (payment: string): Promise<Order | undefined> => {
    const [row] = await engine.read(() => ask(statements.order({ payment })));
    return row && orderOf(row);
  };
  return {
    order,
    openOrder: async request => {
      const row = await engine.write(() => open(statements, request, now()));
      if (row) return orderOf(row);
      throw new LedgerFault(
        'failed',
        `The payment ${request.payment} is not owed: there is no order to open.`,
      );
    },
    finishOrder: async (payment, attempt) => {
      const finish = attempt === undefined ? statements.finishOrder : statements.finishAttempt;
      const values = { payment, attempt: attempt ?? 0, now: now() };
      return (await engine.write(() => ask(finish(values)))).length === 1;
    },
    reopenOrder: async (payment, deadline) => {
      const [row] = await engine.write(() => reopen(statements, payment, deadline));
      return row && orderOf(row);
    },
    openOrders: async () => {
      const rows = await engine.read(() => ask(statements.openOrders({ limit: MAX_OPEN })));
      return rows.map(row => ({ ...orderOf(row), replies: row.replies }));
    },
    replies: async payment => {
      const rows = await engine.read(() => ask(statements.replies({ payment })));
      return rows.map(replyOf);
    },
    addReply: async (payment, reply) => {
      const row = replyRow(payment, reply, now());
      return engine.write(() => add(statements, row));
    },
    rejectReply: async (payment, reply) =>
      (await engine.write(() => ask(statements.rejectReply({ payment, reply, now: now() })))).length === 1,
    saveIntent: async (payment, intent) => {
      const saved = await engine.write(() => ask(statements.saveIntent({ payment, intent })));
      if (saved.length !== 1) throw new LedgerFault('failed', `There is no order of payment ${payment}.`);
    },
    intent: async payment => (await order(payment))?.intent ?? null,
  };
}

export type OrderStatements = ReturnType<typeof orderStatements>;

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

function* open(
  statements: Statements,
  order: { payment: string; request: string; wanted: number; deadline: number },
  now: number,
): Operation<OrderRow | undefined> {
  const { payment, request, wanted, deadline } = order;
  const [existing] = yield* ask(statements.order({ payment }));
  if (existing) return existing;
  const [row] = yield* ask(statements.findToChange({ id: payment }));
  if (row?.state !== 'owed') return undefined;
  yield* ask(statements.insertOrder({ payment, request, wanted, deadline, now }));
  const [created] = yield* ask(statements.order({ payment }));
  return created;
}

/** Payments are locked before orders everywhere, so that no two transactions wait for each other. */
function* reopen(statements: Statements, payment: string, deadline: number): Operation<OrderRow[]> {
  const [row] = yield* ask(statements.findToChange({ id: payment }));
  return row?.state === 'owed' ? yield* ask(statements.reopenOrder({ payment, deadline })) : [];
}

function* add(statements: Statements, row: ReplyRow): Operation<'added' | 'duplicate' | 'full' | 'closed'> {
  const { payment } = row;
  const [order] = yield* ask(statements.orderToChange({ payment }));
  if (!order || order.finished_at !== null) return 'closed';
  const all = yield* ask(statements.everyReply({ payment }));
  if (all.some(other => other.respondent === row.respondent || other.reply === row.reply)) return 'duplicate';
  const counting = all.filter(other => other.rejected_at === null);
  if (counting.length >= order.wanted) {
    const house = row.house === 1 ? undefined : counting.findLast(other => other.house === 1);
    if (!house) return 'full';
    yield* ask(statements.removeReply({ payment, reply: house.reply }));
  }
  yield* ask(statements.insertReply({ ...row, number: (all.at(-1)?.number ?? 0) + 1 }));
  return 'added';
}

function orderOf(row: OrderRow): Order {
  return {
    payment: row.payment,
    request: row.request,
    wanted: row.wanted,
    deadline: row.deadline,
    attempts: row.attempts,
    intent: row.intent,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
  };
}

function replyOf(row: ReplyRow): Reply {
  return {
    id: row.reply,
    text: row.text,
    sentiment: row.sentiment,
    respondent: row.respondent,
    inferred: row.inferred === 1,
    house: row.house === 1,
  };
}

function replyRow(payment: string, reply: Reply, created_at: number): ReplyRow {
  return {
    payment,
    reply: reply.id,
    number: 0,
    // PostgreSQL has no text with a zero character, and nobody means one.
    text: reply.text.replaceAll('\0', ''),
    sentiment: reply.sentiment,
    respondent: reply.respondent,
    inferred: reply.inferred ? 1 : 0,
    house: reply.house ? 1 : 0,
    created_at,
    rejected_at: null,
  };
}
