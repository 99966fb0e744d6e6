import type { Connection } from './connection.js';
import { execute } from './engine.js';
import type { TransactionBody } from './engine.js';
import { paymentOf } from './payment.js';
import type { Payment } from './payment.js';
import * as queries from './queries/callers.js';
import * as claims from './queries/claims.js';

/** How long a caller counts as present after it was seen. */
export const CALLER_LIVE_MS = 5_000;
/** The time within which a hang-up is noticed and recorded. */
export const HANG_UP_MARGIN_MS = 250;
/** The number of concurrent renewals if each is a separate transaction. */
const RENEWED_TOGETHER = 4;

/**
 * A request that waits for a row. Its callers are numbered from 1. Number 0: the request came when the payment may already have been
 * public, so it may be a stranger's. It can't renew, and neither its departure nor its answer is recorded.
 */
export type Caller = { id: string; number: number };

export type PaymentLookup = {
  row: Payment | undefined;
  /** The payment of which the row is an alias. */
  target: Payment | undefined;
  payerKnown: boolean;
};

/** Records which requests wait for a payment. All functions reject with a LedgerFault if the database fails. */
export type CallerStore = {
  /** Whether other servers may use this ledger and have callers of the same payments. */
  readonly shared: boolean;
  /** Reads a payment, the payment of which it is an alias, and whether its payer is known. */
  readonly lookUp: (id: string, payer: string) => Promise<PaymentLookup>;
  /**
   * Adds a request that waits for this payment. `proven`: it came with another payment (an alias of this one, or one with the same
   * identifier), so it is not a stranger's even if this payment is public.
   * @returns undefined if no request can wait for it: it is deleted, released, refunded or an alias
   */
  readonly addCaller: (
    id: string,
    options: { proven: boolean },
  ) => Promise<{ row: Payment; caller: Caller } | undefined>;
  /** Renews callers. @returns those that are the newest of their rows and were not answered with 503; the others must not renew again */
  readonly renewCallers: (callers: readonly Caller[]) => Promise<Caller[]>;
  /** Records that its socket closed, or that it will be answered with 503. @returns false if there is a newer caller or no row */
  readonly removeCaller: (caller: Caller) => Promise<boolean>;
  /** Records that the answer was written out to it `msAgo`. @returns false if that does not count because there is a newer caller */
  readonly markWritten: (caller: Caller, msAgo: number) => Promise<boolean>;
  /**
   * Records that the answer was fetched `msAgo` with the key that this caller was given, as if a newer caller of its own had come and the
   * answer had been written to it. @returns false if that does not count: there is a newer caller, or it was written before
   */
  readonly markFetched: (caller: Caller, msAgo: number) => Promise<boolean>;
};

export function callersOf({ engine, now }: Connection): CallerStore {
  const renewOne = async (caller: Caller): Promise<Caller[]> => {
    const query = (): ReturnType<typeof queries.renew> =>
      queries.renew({ ...caller, live_ms: CALLER_LIVE_MS, now: now() });
    return (await engine.write(() => execute(query()))).length === 1 ? [caller] : [];
  };
  return {
    shared: engine.dialect.concurrentWriters,
    lookUp: (id, payer) => engine.read(() => readPayment(id, payer, now)),
    addCaller: async (id, { proven }) => {
      const [row] = await engine.write(() =>
        execute(queries.watch({ id, live_ms: CALLER_LIVE_MS, now: now() })),
      );
      if (!row) return undefined;
      const number = proven || row.state === 'claimed' ? row.callers : 0;
      return { row: paymentOf(row), caller: { id, number } };
    },
    renewCallers: async callers => {
      const numbered = callers.filter(({ number }) => number > 0);
      const together = engine.dialect.concurrentWriters ? RENEWED_TOGETHER : numbered.length;
      const present: Caller[] = [];
      for (let from = 0; from < numbered.length; from += together) {
        const slice = numbered.slice(from, from + together);
        present.push(...(await Promise.all(slice.map(renewOne))).flat());
      }
      return present;
    },
    removeCaller: async caller =>
      caller.number > 0 && (await engine.write(() => execute(queries.leave(caller)))).length === 1,
    markWritten: async (caller, msAgo) => {
      if (caller.number === 0) return false;
      const query = (): ReturnType<typeof queries.written> =>
        queries.written({ ...caller, ms_ago: Math.round(msAgo), now: now() });
      return (await engine.write(() => execute(query()))).length === 1;
    },
    markFetched: async (caller, msAgo) => {
      if (caller.number === 0) return false;
      const query = (): ReturnType<typeof queries.fetched> =>
        queries.fetched({ ...caller, ms_ago: Math.round(msAgo), now: now() });
      return (await engine.write(() => execute(query()))).length === 1;
    },
  };
}

export function* readPayment(
  id: string,
  payer: string,
  now: Connection['now'],
): TransactionBody<PaymentLookup> {
  const [summary] = yield* execute(claims.summary({ id, payer }));
  const row = summary?.seen ? yield* findPayment(id, now) : undefined;
  const target = row?.aliasOf ? yield* findPayment(row.aliasOf, now) : undefined;
  return { row, target, payerKnown: summary?.known === 1 };
}

function* findPayment(id: string, now: Connection['now']): TransactionBody<Payment | undefined> {
  const [row] = yield* execute(claims.find({ id, now: now() }));
  return row && paymentOf(row);
}
