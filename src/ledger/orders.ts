import type { Connection } from './connection.js';
import { idOf } from './ids.js';
import { changes, execute } from './engine.js';
import type { TransactionBody, Query } from './engine.js';
import { LedgerFault } from './fault.js';
import { tellOf, type Telling } from './outbox.js';
import { openStore, type OperationStore, type StoreDefinition } from './operation-store.js';
import type { OrderRow } from './schema.js';
import { findToChange } from './queries/claims.js';
import * as queries from './queries/orders.js';

const MAX_OPEN = 1_000;
const MAX_FAILURE_CHARACTERS = 1_000;
const FIRST_RESTART_MS = 1_000;
const LONGEST_RESTART_MS = 3_600_000;
/** The longest pause before interrupted work is started again, as a share of the attempt's time. */
const RESTART_SHARE = 1 / 10;

/** Work that is paid for before it is done. Its attempts each have a deadline. Times are milliseconds since 1970. */
export type Order = Readonly<ReturnType<typeof orderOf>>;

type NewOrder = Pick<Order, 'payment' | 'request' | 'wanted' | 'deadline'>;

/** How an attempt failed. `againMs`: ms until a call by the buyer may start the next attempt; null: only the operator may. */
type FailedAttempt = { attempt: number; failure: string; againMs: number | null };

/** All functions reject with a LedgerFault if the database fails. */
export function ordersOf(connection: Connection) {
  const { engine, now } = connection;
  const written = async (operation: () => TransactionBody<OrderRow[]>): Promise<Order | undefined> => {
    const [row] = await engine.write(operation);
    return row && orderOf(row);
  };
  return {
    order: async (payment: string): Promise<Order | undefined> => {
      const [row] = await engine.read(() => execute(queries.findOrder({ payment })));
      return row && orderOf(row);
    },
    /**
     * Creates the order of an owed payment, as its first attempt, or returns the existing one.
     * @throws LedgerFault `failed` if there is neither an order nor an owed payment
     */
    openOrder: async (request: NewOrder): Promise<Order> => {
      const order = await written(() => open(request, connection));
      if (order) return order;
      throw new LedgerFault(
        'failed',
        `The payment ${request.payment} is not owed: there is no order to open.`,
      );
    },
    /** Records that an attempt ended, delivered or failed. @returns false if it had already ended, or is not the current attempt */
    finishOrder: (payment: string, attempt?: number): Promise<boolean> =>
      changes(engine, () => queries.finishOrder({ payment, attempt, now: now() })),
    /** Records that an attempt failed. @returns false if the claim is no longer the current one, or the attempt has ended */
    failOrder: async (payment: string, claim: number, failed: FailedAttempt): Promise<boolean> =>
      (await engine.write(() => fail(payment, claim, failed, connection))).length === 1,
    /**
     * Counts one more start of the work on an order in progress. `deadline`: the deadline to give the attempt, if
     * this is its first start. `attemptMs`: how long an attempt may take, which limits the pause after an
     * interruption.
     * @returns undefined if there is no such order, or its work is paused after an interruption
     */
    beginOrder: (payment: string, attempt: { deadline: number; attemptMs: number }) =>
      written(() => begin(payment, attempt, now())),
    /**
     * Called when a server shuts down while it works on an order. Any server may continue immediately, without the pause that follows a
     * crash. The deadline stays.
     * @returns false if the claim is no longer the current one, or the attempt has ended
     */
    handOverOrder: async (payment: string, claim: number): Promise<boolean> =>
      (await engine.write(() => handOver(payment, claim))).length === 1,
    /**
     * Starts another attempt when the buyer calls.
     * @returns undefined unless the last attempt has ended, the next one is due, and the payment is still owed
     */
    reopenOrder: (payment: string, deadline: number) =>
      written(() => reopen({ payment, deadline, due: true, now: now() })),
    /**
     * Starts another attempt at the operator's request, even before it is due or after the last allowed attempt. If an attempt is paused after an
     * interruption, the new one replaces it.
     */
    retryOrder: (payment: string, deadline: number) =>
      written(() => reopen({ payment, deadline, due: false, now: now() })),
    /**
     * Replaces the attempt with one that has a later deadline. Possible once each time the order is
     * opened.
     * @returns undefined if it was already extended, or if the attempt is not the current one or has ended
     */
    extendOrder: (payment: string, attempt: number, deadline: number) =>
      written(() => execute(queries.extendOrder({ payment, attempt, deadline }))),
    /**
     * Orders in progress whose work has parts, either of one operation or of all. Oldest first, at most
     * 1 000.
     */
    openOrders: async (operation?: string): Promise<Order[]> => {
      const rows = await engine.read(() => execute(queries.openOrders({ limit: MAX_OPEN, operation })));
      return rows.map(orderOf);
    },
    openStore: (definition: StoreDefinition): Promise<OperationStore> =>
      openStore({ engine, now }, definition),
  };
}

function* open(order: NewOrder, telling: Telling): TransactionBody<OrderRow[]> {
  const { payment, wanted, deadline } = order;
  const existing = yield* execute(queries.findOrder({ payment }));
  if (existing.length > 0) return existing;
  const [row] = yield* execute(findToChange({ id: payment }));
  if (row?.state !== 'owed') return [];
  yield* execute(queries.insertOrder({ ...order, now: telling.now() }));
  if (wanted > 0) yield* tellOf(telling, { kind: 'order.opened', id: payment }, { wanted, deadline });
  return yield* execute(queries.findOrder({ payment }));
}

/** All transactions lock payments before orders, so that they can't deadlock. */
function* reopen(how: Parameters<typeof queries.reopenOrder>[0]): TransactionBody<OrderRow[]> {
  const [row] = yield* execute(findToChange({ id: how.payment }));
  return row?.state === 'owed' ? yield* execute(queries.reopenOrder(how)) : [];
}

/**
 * The pause before interrupted work is started again doubles each time, so that an order that crashes the server can't do so in a tight
 * loop. It is at most a tenth of the attempt's time, or an hour once the deadline has passed.
 */
function* begin(
  payment: string,
  { deadline, attemptMs }: { deadline: number; attemptMs: number },
  now: Query,
): TransactionBody<OrderRow[]> {
  const [order] = yield* execute(queries.findOrderToChange({ payment }));
  if (!order) return [];
  const lateMs = Math.min(FIRST_RESTART_MS * 2 ** order.starts, LONGEST_RESTART_MS);
  const againMs = Math.min(lateMs, Math.max(FIRST_RESTART_MS, Math.round(attemptMs * RESTART_SHARE)));
  return yield* execute(queries.beginAttempt({ payment, deadline, againMs, lateMs, now }));
}

function* handOver(payment: string, claim: number): TransactionBody<unknown[]> {
  const [row] = yield* execute(findToChange({ id: payment }));
  return row?.claim === claim ? yield* execute(queries.handOver({ payment })) : [];
}

function* fail(
  payment: string,
  claim: number,
  { attempt, failure, againMs }: FailedAttempt,
  telling: Telling,
): TransactionBody<unknown[]> {
  const [row] = yield* execute(findToChange({ id: payment }));
  if (row?.claim !== claim) return [];
  const kept = failure.slice(0, MAX_FAILURE_CHARACTERS);
  const ended = { payment, attempt, failure: kept, againMs, now: telling.now() };
  const failed = yield* execute(queries.failAttempt(ended));
  if (failed.length === 1) {
    const more = { attempt, failure: kept, final: againMs === null };
    yield* tellOf(telling, { kind: 'payment.owed', id: payment, once: `attempt ${attempt}` }, more);
  }
  return failed;
}

function orderOf(row: OrderRow) {
  return {
    /** Id of the payment that bought the order. */
    payment: idOf(row.payment),
    /** Canonical JSON of the request. */
    request: row.request,
    /** How many parts were paid for; 0 if the work has none. */
    wanted: row.wanted,
    /** How many of the parts are done. */
    done: row.done,
    /** When the attempt ends. */
    deadline: row.deadline,
    /** 1 for the first attempt. */
    attempts: row.attempts,
    createdAt: row.created_at,
    /** When the last attempt ended, delivered or failed; null while it is in progress. */
    finishedAt: row.finished_at,
    /** While in progress: when its work may be started (again). After that: when a call may start a new attempt; null: only the operator may. */
    nextAttemptAt: row.next_attempt_at,
    /** How many times the order was opened or reopened. Unlike `attempts`, this does not count extensions. */
    tries: row.tries,
    /** The reason of the last failed attempt, as reported to the buyer. */
    failure: row.failure,
  };
}
