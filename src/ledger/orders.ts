import type { Connection } from './connection.js';
import { idOf } from './ids.js';
import { execute } from './engine.js';
import type { TransactionBody, Query } from './engine.js';
import { LedgerFault } from './fault.js';
import { openStore, type OperationStore, type StoreDefinition } from './operation-store.js';
import type { OrderRow } from './schema.js';
import { findToChange } from './queries/claims.js';
import * as queries from './queries/orders.js';

const MAX_OPEN = 1_000;
const MAX_FAILURE_CHARACTERS = 1_000;
const FIRST_RESTART_MS = 1_000;
const LONGEST_RESTART_MS = 3_600_000;
/** No pause takes more of the time of an attempt. */
const RESTART_SHARE = 1 / 10;

/** Work that is paid for before it is done. Times are milliseconds since 1970. */
export type Order = {
  /** Id of the payment that bought it. */
  readonly payment: string;
  /** Canonical JSON of the request. */
  readonly request: string;
  /** How many parts were paid for; 0 if the work has none. */
  readonly wanted: number;
  /** How many of them are done. */
  readonly done: number;
  /** When the attempt ends. */
  readonly deadline: number;
  /** 1 for the first attempt. */
  readonly attempts: number;
  readonly createdAt: number;
  /** When the last attempt ended, delivered or failed; null while it is in progress. */
  readonly finishedAt: number | null;
  /** When work on it may begin: again, while it is in progress; after that, with a new attempt. Null: only the operator may start one. */
  readonly nextAttemptAt: number | null;
  /** How often it was opened. Unlike `attempts`, this does not count extensions. */
  readonly tries: number;
  /** Why the last attempt that failed did, as its buyer was told. */
  readonly failure: string | null;
};

/** How an attempt failed. `againMs`: from now until a call may start the next one; null: only the operator may. */
type FailedAttempt = { attempt: number; failure: string; againMs: number | null };

/** All functions reject with a LedgerFault if the database fails. */
export type OrderStore = {
  /**
   * Creates the order of an owed payment, as its first attempt, or returns the existing one.
   * @throws LedgerFault `failed` if there is neither an order nor an owed payment
   */
  readonly openOrder: (order: {
    payment: string;
    request: string;
    wanted: number;
    deadline: number;
  }) => Promise<Order>;
  readonly order: (payment: string) => Promise<Order | undefined>;
  /** Records that an attempt ended, delivered or failed. @returns false if it had already ended, or is not the current attempt */
  readonly finishOrder: (payment: string, attempt?: number) => Promise<boolean>;
  /** Records that an attempt failed. @returns false if the claim is not the current one any more, or the attempt has ended */
  readonly failOrder: (payment: string, claim: number, failed: FailedAttempt) => Promise<boolean>;
  /** Counts a start of the work on an order in progress. `attemptMs`: the time of an attempt that was not begun before */
  readonly beginOrder: (
    payment: string,
    attempt: { deadline: number; attemptMs: number },
  ) => Promise<Order | undefined>;
  /**
   * The server that works on an order stops: its start does not count, and any server may begin at once. The deadline stays.
   * @returns false if the claim is not the current one any more, or the attempt has ended
   */
  readonly handOverOrder: (payment: string, claim: number) => Promise<boolean>;
  /** Starts another attempt. @returns undefined unless the last one has ended, the next one is due, and the payment is still owed */
  readonly reopenOrder: (payment: string, deadline: number) => Promise<Order | undefined>;
  /** The same for the operator, whenever it is due, also after the last attempt, and in place of one that pauses after an interruption. */
  readonly retryOrder: (payment: string, deadline: number) => Promise<Order | undefined>;
  /**
   * Ends the attempt and starts another in its place, once since the order was opened or reopened.
   * @returns undefined if that has happened already, or the attempt is not the current one or has ended
   */
  readonly extendOrder: (payment: string, attempt: number, deadline: number) => Promise<Order | undefined>;
  /** Orders in progress whose work has parts, of one operation or of all, oldest first, at most 1 000. */
  readonly openOrders: (operation?: string) => Promise<Order[]>;
  /** Opens the tables of an operation beside those of the ledger. */
  readonly openStore: (definition: StoreDefinition) => Promise<OperationStore>;
};

export function ordersOf({ engine, now }: Connection): OrderStore {
  const order = async (payment: string): Promise<Order | undefined> => {
    const [row] = await engine.read(() => execute(queries.findOrder({ payment })));
    return row && orderOf(row);
  };
  return {
    order,
    openOrder: async request => {
      const row = await engine.write(() => open(request, now()));
      if (row) return orderOf(row);
      throw new LedgerFault(
        'failed',
        `The payment ${request.payment} is not owed: there is no order to open.`,
      );
    },
    ...attemptsOf({ engine, now }),
    openOrders: async operation => {
      const rows = await engine.read(() => execute(queries.openOrders({ limit: MAX_OPEN, operation })));
      return rows.map(orderOf);
    },
    openStore: definition => openStore({ engine, now }, definition),
  };
}

type Attempts = Pick<
  OrderStore,
  'finishOrder' | 'failOrder' | 'beginOrder' | 'handOverOrder' | 'reopenOrder' | 'retryOrder' | 'extendOrder'
>;

function attemptsOf({ engine, now }: Connection): Attempts {
  return {
    finishOrder: async (payment, attempt) => {
      const finish = (): Query => {
        const ended = { payment, now: now() };
        return attempt === undefined
          ? queries.finishOrder(ended)
          : queries.finishAttempt({ ...ended, attempt });
      };
      return (await engine.write(() => execute(finish()))).length === 1;
    },
    reopenOrder: async (payment, deadline) => {
      const [row] = await engine.write(() => reopen({ payment, deadline, due: true, now: now() }));
      return row && orderOf(row);
    },
    retryOrder: async (payment, deadline) => {
      const [row] = await engine.write(() => reopen({ payment, deadline, due: false, now: now() }));
      return row && orderOf(row);
    },
    beginOrder: async (payment, attempt) => {
      const [row] = await engine.write(() => begin(payment, attempt, now()));
      return row && orderOf(row);
    },
    handOverOrder: async (payment, claim) =>
      (await engine.write(() => handOver(payment, claim))).length === 1,
    failOrder: async (payment, claim, failed) =>
      (await engine.write(() => fail(payment, claim, { ...failed, now: now() }))).length === 1,
    extendOrder: async (payment, attempt, deadline) => {
      const [row] = await engine.write(() => execute(queries.extendOrder({ payment, attempt, deadline })));
      return row && orderOf(row);
    },
  };
}

function* open(
  order: { payment: string; request: string; wanted: number; deadline: number },
  now: Query,
): TransactionBody<OrderRow | undefined> {
  const { payment, request, wanted, deadline } = order;
  const [existing] = yield* execute(queries.findOrder({ payment }));
  if (existing) return existing;
  const [row] = yield* execute(findToChange({ id: payment }));
  if (row?.state !== 'owed') return undefined;
  yield* execute(queries.insertOrder({ payment, request, wanted, deadline, now }));
  const [created] = yield* execute(queries.findOrder({ payment }));
  return created;
}

/** All transactions lock payments before orders, so that they can't deadlock. */
function* reopen(how: Parameters<typeof queries.reopenOrder>[0]): TransactionBody<OrderRow[]> {
  const [row] = yield* execute(findToChange({ id: how.payment }));
  return row?.state === 'owed' ? yield* execute(queries.reopenOrder(how)) : [];
}

/**
 * Work that was interrupted is begun again later each time, so that an order which ends its server does not do so without end: after
 * a tenth of the attempt at most, and once its deadline has passed after an hour at most.
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
  { attempt, failure, againMs, now }: FailedAttempt & { now: Query },
): TransactionBody<unknown[]> {
  const [row] = yield* execute(findToChange({ id: payment }));
  if (row?.claim !== claim) return [];
  const kept = failure.slice(0, MAX_FAILURE_CHARACTERS);
  return yield* execute(queries.failAttempt({ payment, attempt, failure: kept, againMs, now }));
}

function orderOf(row: OrderRow): Order {
  return {
    payment: idOf(row.payment),
    request: row.request,
    wanted: row.wanted,
    done: row.done,
    deadline: row.deadline,
    attempts: row.attempts,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
    nextAttemptAt: row.next_attempt_at,
    tries: row.tries,
    failure: row.failure,
  };
}
