import {
  execute,
  lockOpenOrder,
  lockUnanswered,
  type OperationStore,
  type OrderInProgress,
  paymentKey,
  reportDone,
  sql,
  type StoreDefinition,
  type TransactionBody,
} from 'coinslot';
import type { Added, Opinion, Question, Reply, ReplyStore } from './replies.js';

/** Earlier versions kept the replies in the ledger's own tables. Those rows are copied when these tables are created. */
export const REPLY_TABLES: StoreDefinition = {
  name: 'brand_feedback',
  tables: { brand_feedback_replies: ['payment', 'reply'], brand_feedback_intents: ['payment'] },
  migrations: [
    [
      `create table brand_feedback_replies (payment {bytes} not null references orders (payment), reply text not null,
         number bigint not null, text text not null, sentiment text not null, respondent text not null, inferred bigint not null,
         sample bigint not null, created_at bigint not null, rejected_at bigint,
         constraint brand_feedback_replies_key primary key (payment, reply),
         constraint brand_feedback_respondent unique (payment, respondent))`,
      `create table brand_feedback_intents (payment {bytes} not null primary key references orders (payment), intent text not null)`,
      {
        ifColumn: 'replies.payment',
        sql: `insert into brand_feedback_replies
            (payment, reply, number, text, sentiment, respondent, inferred, sample, created_at, rejected_at)
          select payment, reply, number, text, sentiment, respondent, inferred, house, created_at, rejected_at from replies`,
      },
      {
        ifColumn: 'orders.intent',
        sql: 'insert into brand_feedback_intents (payment, intent) select payment, intent from orders where intent is not null',
      },
    ],
  ],
};

type Row = {
  reply: string;
  /** Increases within an order, so that replies from the same millisecond can be sorted. */
  number: number;
  text: string;
  sentiment: Exclude<Opinion, 'unknown'>;
  respondent: string;
  /** 1 if the sentiment is not known. Earlier versions guessed it in that case, so `sentiment` is then ignored. */
  inferred: number;
  sample: number;
  /** `HELD` if the operator has not decided yet: earlier versions treat such a reply as rejected and do not sell it. */
  rejected_at: number | null;
};

const HELD = 0;
/** The maximum number of held replies for one order. Further ones are refused. */
const MAX_HELD = 100;

type Orders = { ordersInProgress: () => Promise<OrderInProgress[]> };

/** Stores replies in brandFeedback's tables. Each change also updates the progress of the order, in the same transaction. */
export function replyStoreOn(store: OperationStore, { ordersInProgress }: Orders): ReplyStore {
  return {
    open: async () =>
      (await ordersInProgress()).map(order => ({ ...questionOf(order), replies: order.done })),
    replies: async id => {
      const rows = await store.read(() => everyReply(id));
      return rows.filter(counts).map(replyOf);
    },
    held: async id => {
      const rows = await store.read(() => everyReply(id));
      return rows.filter(isHeld).map(replyOf);
    },
    add: (id, reply) => store.write(() => add(store, id, reply)),
    admit: (id, reply) => store.write(() => admit(id, reply)),
    reject: (id, reply) => store.write(() => reject(store, id, reply)),
    intent: async id => {
      const [row] = await store.read(() =>
        execute(
          sql<{
            intent: string;
          }>`select intent from brand_feedback_intents where payment = ${paymentKey(id)}`,
        ),
      );
      return row?.intent ?? null;
    },
    saveIntent: async (id, intent) => {
      await store.write(() =>
        execute(
          sql`
            insert into brand_feedback_intents (payment, intent) values (${paymentKey(id)}, ${intent})
            on conflict (payment) do update set intent = excluded.intent`,
        ),
      );
    },
  };
}

/** The question that an order asks. */
function questionOf({ body, ...order }: OrderInProgress): Question {
  const { brand, question } = body as { brand: string; question: string };
  const { id, wanted, deadline, attempt } = order;
  return { id, brand, question, wanted, deadline, attempt };
}

/** All replies, including rejected ones. An order has only a few. */
function everyReply(id: string): TransactionBody<Row[]> {
  return execute(
    sql<Row>`select * from brand_feedback_replies where payment = ${paymentKey(id)} order by number`,
  );
}

const counts = ({ rejected_at: rejected }: Row): boolean => rejected === null;
const isHeld = ({ rejected_at: rejected }: Row): boolean => rejected === HELD;

function* add(store: OperationStore, id: string, reply: Reply): TransactionBody<Added> {
  const order = yield* lockOpenOrder(id);
  if (!order) return 'closed';
  const all = yield* everyReply(id);
  if (all.some(other => other.respondent === reply.respondent || other.reply === reply.id))
    return 'duplicate';
  const counting = all.filter(counts);
  const isFull = counting.length >= order.wanted;
  const number = (all.at(-1)?.number ?? 0) + 1;
  if (reply.isHeld) {
    if (isFull || all.filter(isHeld).length >= MAX_HELD) return 'full';
    yield* insert(store, id, reply, number);
    return 'held';
  }
  if (isFull && (reply.isSample || !(yield* removeSample(id, counting)))) return 'full';
  yield* insert(store, id, reply, number);
  yield* reportDone(id, isFull ? counting.length : counting.length + 1);
  return 'added';
}

function* insert(
  { now }: OperationStore,
  id: string,
  { id: replyId, text, sentiment, respondent, isSample, isHeld: held }: Reply,
  number: number,
): TransactionBody<void> {
  const isKnown = sentiment !== 'unknown';
  // PostgreSQL can't store the character U+0000 in text.
  yield* execute(sql`
    insert into brand_feedback_replies
      (payment, reply, number, text, sentiment, respondent, inferred, sample, created_at, rejected_at)
    values (${paymentKey(id)}, ${replyId}, ${number}, ${text.replaceAll('\0', '')}, ${isKnown ? sentiment : 'neutral'},
      ${respondent}, ${isKnown ? 0 : 1}, ${isSample ? 1 : 0}, ${now()}, ${held ? HELD : null})`);
}

/**
 * Removes a sample respondent's reply to make room for a person's.
 * @returns false if there is none
 */
function* removeSample(id: string, counting: Row[]): TransactionBody<boolean> {
  const sample = counting.findLast(other => other.sample === 1);
  if (!sample) return false;
  yield* execute(
    sql`delete from brand_feedback_replies where payment = ${paymentKey(id)} and reply = ${sample.reply}`,
  );
  return true;
}

function* admit(id: string, reply: string): TransactionBody<boolean> {
  const order = yield* lockUnanswered(id);
  if (!order) return false;
  const all = yield* everyReply(id);
  if (!all.filter(isHeld).some(each => each.reply === reply)) return false;
  const counting = all.filter(counts);
  const isFull = counting.length >= order.wanted;
  if (isFull && !(yield* removeSample(id, counting))) return false;
  yield* execute(sql`
    update brand_feedback_replies set rejected_at = null where payment = ${paymentKey(id)} and reply = ${reply}`);
  yield* reportDone(id, isFull ? counting.length : counting.length + 1);
  return true;
}

/** A reply in a saved answer can't be rejected, even if the answer has not been delivered yet. */
function* reject({ now }: OperationStore, id: string, reply: string): TransactionBody<boolean> {
  if (!(yield* lockUnanswered(id))) return false;
  const all = yield* everyReply(id);
  if (!all.some(each => each.reply === reply && (counts(each) || isHeld(each)))) return false;
  yield* execute(sql`
    update brand_feedback_replies set rejected_at = ${now()} where payment = ${paymentKey(id)} and reply = ${reply}`);
  yield* reportDone(id, all.filter(each => counts(each) && each.reply !== reply).length);
  return true;
}

function replyOf(row: Row): Reply {
  return {
    id: row.reply,
    text: row.text,
    sentiment: row.inferred === 1 ? 'unknown' : row.sentiment,
    respondent: row.respondent,
    isSample: row.sample === 1,
    ...(isHeld(row) ? { isHeld: true } : {}),
  };
}
