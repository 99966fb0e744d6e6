import type { Connection } from './connection.js';
import { changes, execute, finish } from './engine.js';
import type { Query, Scope, TransactionBody } from './engine.js';
import { idOf } from './ids.js';
import { paymentOf } from './payment.js';
import type { Payment } from './payment.js';
import * as queries from './queries/callers.js';
import * as claims from './queries/claims.js';

/** How long a caller counts as present after it was last seen. */
export const CALLER_LIVE_MS = 5_000;
/** The time within which a hang-up is noticed and recorded. */
export const HANG_UP_MARGIN_MS = 250;

/**
 * How many more ms a caller that was last seen at `seen` (`performance.now()`) counts as present. The time
 * that a write spends in the queue does not extend this.
 */
export const liveSince = (seen: number): number => CALLER_LIVE_MS - Math.floor(performance.now() - seen);

/** The most callers that are renewed at a time. On PostgreSQL, the more rows one transaction changes, the more of them move to other pages. */
const RENEWED_TOGETHER = 64;

/**
 * An HTTP or MCP request that waits for the answer to a payment. The callers of a payment are numbered from 1. A caller gets the number 0
 * if the transaction may already have been public on chain when it arrived, because its sender may then not be the buyer. Such a
 * caller can't be renewed, and neither its departure nor the delivery of the answer to it is recorded.
 */
export type Caller = { id: string; number: number };

export const callerKey = ({ id, number }: Caller): string => `${id} ${number}`;

function* slices(callers: readonly Caller[]): Generator<Caller[]> {
  for (let from = 0; from < callers.length; from += RENEWED_TOGETHER)
    yield callers.slice(from, from + RENEWED_TOGETHER);
}

export type PaymentLookup = {
  row: Payment | undefined;
  /** If the row is an alias: the payment whose answer it redeems. */
  target: Payment | undefined;
  payerKnown: boolean;
};

/** Records which requests are waiting for a payment. All functions reject with a LedgerFault if the database fails. */
export function callersOf({ engine, now }: Connection) {
  const renewOne = (caller: Caller): Promise<boolean> => {
    const seen = performance.now();
    const renewal = () => queries.renew({ ...caller, live_ms: liveSince(seen), now: now() });
    return changes(engine, renewal, { payment: caller.id });
  };
  /** Renews callers in one statement, except those whose rows are being changed. @returns the keys of the renewed callers */
  const renewUnlocked = async (callers: readonly Caller[]): Promise<string[]> => {
    const seen = performance.now();
    const renewal = () => finish(queries.renewUnlocked({ callers, live_ms: liveSince(seen), now: now() }));
    return (await engine.write(renewal, { neverWaits: true })).map(({ id, number }) =>
      callerKey({ id: idOf(id), number }),
    );
  };
  const recorded = async ({ number }: Caller, query: () => Query, scope?: Scope): Promise<boolean> =>
    number > 0 && changes(engine, query, scope);
  return {
    /** Whether other servers can use this ledger and serve callers of the same payments. */
    shared: engine.dialect.concurrentWriters,
    /**
     * Resolves when a server notifies that the payment is decided, or after `ms` milliseconds at the latest.
     */
    changeOf: (id: string, ms: number): Promise<void> => engine.changeOf(id, ms),
    lookUp: (id: string, payer: string): Promise<PaymentLookup> =>
      engine.read(() => readPayment(id, payer, now)),
    /**
     * Adds a request that waits for this payment.
     * @param how.proven the request presented another payment of the same payer (an alias of this one, or one with the same identifier),
     * so it is the buyer's even if this payment is public
     * @param how.requestId the id of the request (`X-Request-Id`)
     * @returns undefined if no request can wait for the payment: it is deleted, released, refunded or an alias
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
    /**
     * Renews callers.
     * @returns the callers that are the newest of their payment and were not answered with 503; the others must not be renewed again
     */
    renewCallers: async (callers: readonly Caller[]): Promise<Caller[]> => {
      const numbered = callers.filter(({ number }) => number > 0);
      const present = new Set<string>();
      // On SQLite, even single renewals share a commit. If a statement fails, the callers in it are renewed one by one below.
      if (engine.dialect.concurrentWriters)
        for (const some of slices(numbered))
          for (const key of await renewUnlocked(some).catch(() => [])) present.add(key);
      for (const some of slices(numbered.filter(caller => !present.has(callerKey(caller))))) {
        const renewed = await Promise.all(some.map(renewOne));
        for (const [index, caller] of some.entries()) if (renewed[index]) present.add(callerKey(caller));
      }
      return numbered.filter(caller => present.has(callerKey(caller)));
    },
    /**
     * Records that a caller's socket closed, or that it will be answered with 503. Not queued behind other operations on the payment, so
     * that it is recorded within `HANG_UP_MARGIN_MS`.
     * @returns false if there is a newer caller or no row
     */
    removeCaller: (caller: Caller): Promise<boolean> => recorded(caller, () => queries.leave(caller)),
    /**
     * Records that the answer was written to a caller's socket `msAgo` ms ago.
     * @returns false if that does not count because there is a newer caller
     */
    markWritten: (caller: Caller, msAgo: number): Promise<boolean> =>
      recorded(caller, () => queries.written({ ...caller, ms_ago: Math.round(msAgo), now: now() }), {
        payment: caller.id,
      }),
    /**
     * Records that the answer was fetched `msAgo` ms ago with the key given to this caller. The fetch counts as one more caller, to which the answer
     * was written.
     * @returns false if it does not count: there is a newer caller, or the answer was already written to this one
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
