import type { Connection } from './connection.js';
import { changes, execute, finish } from './engine.js';
import type { Query, Scope, TransactionBody } from './engine.js';
import { paymentOf } from './payment.js';
import type { Payment } from './payment.js';
import * as queries from './queries/callers.js';
import * as claims from './queries/claims.js';

/** How long a caller counts as present after it was seen. */
export const CALLER_LIVE_MS = 5_000;
/** The time within which a hang-up is noticed and recorded. */
export const HANG_UP_MARGIN_MS = 250;

/**
 * How long a caller counts as present from now on that was seen at a time (`performance.now()`), in ms: an operation that had to wait says
 * nothing of the time it waited.
 */
export const liveSince = (seen: number): number => CALLER_LIVE_MS - Math.floor(performance.now() - seen);

/** The number of concurrent renewals, which share a commit. */
const RENEWED_TOGETHER = 64;

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
export function callersOf({ engine, now }: Connection) {
  const renewOne = (caller: Caller): Promise<boolean> => {
    const seen = performance.now();
    const renewal = () => queries.renew({ ...caller, live_ms: liveSince(seen), now: now() });
    return changes(engine, renewal, { payment: caller.id });
  };
  /** The most callers whose departure and answer are recorded. */
  const recorded = async ({ number }: Caller, query: () => Query, scope?: Scope): Promise<boolean> =>
    number > 0 && changes(engine, query, scope);
  return {
    /** Whether other servers may use this ledger and have callers of the same payments. */
    shared: engine.dialect.concurrentWriters,
    /** Reads a payment, the payment of which it is an alias, and whether its payer is known. */
    lookUp: (id: string, payer: string): Promise<PaymentLookup> =>
      engine.read(() => readPayment(id, payer, now)),
    /**
     * Adds a request that waits for this payment. `proven`: it came with another payment (an alias of this one, or one with the same
     * identifier), so it is not a stranger's even if this payment is public. `requestId`: of that request.
     * @returns undefined if no request can wait for it: it is deleted, released, refunded or an alias
     */
    addCaller: async (
      id: string,
      { proven, requestId = null }: { proven: boolean; requestId?: string | null | undefined },
    ): Promise<{ row: Payment; caller: Caller } | undefined> => {
      const seen = performance.now();
      const [row] = await engine.write(
        () => finish(queries.watch({ id, live_ms: liveSince(seen), request_id: requestId, now: now() })),
        { payment: id },
      );
      if (!row) return undefined;
      const number = proven || row.state === 'claimed' ? row.callers : 0;
      return { row: paymentOf(row), caller: { id, number } };
    },
    /** Renews callers. @returns those that are the newest of their rows and were not answered with 503; the others must not renew again */
    renewCallers: async (callers: readonly Caller[]): Promise<Caller[]> => {
      const numbered = callers.filter(({ number }) => number > 0);
      const present: Caller[] = [];
      for (let from = 0; from < numbered.length; from += RENEWED_TOGETHER) {
        const slice = numbered.slice(from, from + RENEWED_TOGETHER);
        const renewed = await Promise.all(slice.map(renewOne));
        present.push(...slice.filter((_, index) => renewed[index]));
      }
      return present;
    },
    /**
     * Records that its socket closed, or that it will be answered with 503, within `HANG_UP_MARGIN_MS`: it waits for no other operation.
     * @returns false if there is a newer caller or no row
     */
    removeCaller: (caller: Caller): Promise<boolean> => recorded(caller, () => queries.leave(caller)),
    /** Records that the answer was written out to it `msAgo`. @returns false if that does not count because there is a newer caller */
    markWritten: (caller: Caller, msAgo: number): Promise<boolean> =>
      recorded(caller, () => queries.written({ ...caller, ms_ago: Math.round(msAgo), now: now() }), {
        payment: caller.id,
      }),
    /**
     * Records that the answer was fetched `msAgo` with the key that this caller was given, as if a newer caller of its own had come and the
     * answer had been written to it. @returns false if that does not count: there is a newer caller, or it was written before
     */
    markFetched: (caller: Caller, msAgo: number): Promise<boolean> =>
      recorded(caller, () => queries.fetched({ ...caller, ms_ago: Math.round(msAgo), now: now() })),
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
