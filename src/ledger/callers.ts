import type { Connection } from './connection.js';
import { execute } from './engine.js';
import type { TransactionBody } from './engine.js';
import { paymentOf } from './payment.js';
import type { Payment } from './payment.js';
import * as queries from './queries/callers.js';
import * as claims from './queries/claims.js';

/** How long a caller counts as present after it was seen. */
export const CALLER_LIVE_MS = 5_000;
/** Within this time a hang-up is noticed and recorded. */
export const HANG_UP_MARGIN_MS = 250;
/** Renewals that are under way at a time where each is a transaction of its own. */
const RENEWED_TOGETHER = 4;

/**
 * A request that waits for a row, by its number among all that ever did. Number 0: it came when the payment may have been public, so it
 * proves nothing: it can neither renew, nor leave, nor be written to.
 */
export type Caller = { id: string; number: number };

export type PaymentLookup = {
  row: Payment | undefined;
  /** What the row is an alias of. */
  target: Payment | undefined;
  payerKnown: boolean;
};

/** Who waits for a payment is a fact in the ledger. All of them reject with a LedgerFault when the database fails. */
export type CallerStore = {
  /** Other servers may be on this ledger, and have callers of the same payments. */
  readonly shared: boolean;
  /** A payment, what it stands for, and its payer's standing, in one read. */
  readonly lookUp: (id: string, payer: string) => Promise<PaymentLookup>;
  /**
   * One more request waits for this payment. `proven`: it came by a payment of its own (an alias of this one, or one with the same
   * identifier), so it is no stranger even if this payment is public.
   * @returns undefined where nobody can wait: it is gone, released, refunded or an alias
   */
  readonly addCaller: (
    id: string,
    options: { proven: boolean },
  ) => Promise<{ row: Payment; caller: Caller } | undefined>;
  /** They are there. @returns those that are the newest of their rows and were not sent away; the others stop renewing */
  readonly renewCallers: (callers: readonly Caller[]) => Promise<Caller[]>;
  /** Its socket closed, or it is about to be sent away. @returns false if a newer caller came, or the row is gone */
  readonly removeCaller: (caller: Caller) => Promise<boolean>;
  /** The last byte of the answer went to its intact socket so long ago. @returns false if that does not count, since a newer caller came */
  readonly markWritten: (caller: Caller, msAgo: number) => Promise<boolean>;
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
