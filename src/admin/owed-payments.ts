import type { Ledger, Order, Payment } from '../ledger/store.js';
import { isInTime, mayRetry, pausedUntil } from './payment-facts.js';

/** The maximum number of payments to read from the ledger at once. */
const MAX_READ = 1_000;

/** Payments whose order is in progress. They are owed as well, but need attention only after the deadline of the order. */
export function paymentsInProgress(orders: readonly Order[] | string, now: number): Set<string> {
  const open = typeof orders === 'string' ? [] : orders.filter(order => isInTime(order, now));
  return new Set(open.map(({ payment }) => payment));
}

/** An owed payment, the outcome of its order, and whether another attempt can be started. */
export type Owed = { payment: Payment; failure: string | null; mayRetry: boolean };

/** Adds to each payment the outcome of its order, with one read of the ledger for each payment. */
export async function withOrders(
  ledger: Pick<Ledger, 'order'>,
  owed: readonly Payment[],
  now: number,
): Promise<Owed[]> {
  return Promise.all(
    owed.map(async payment => {
      const order = await ledger.order(payment.id);
      const may = mayRetry({ payment, order, pausedUntil: pausedUntil(payment, order, now) });
      return { payment, failure: order?.failure ?? null, mayRetry: may };
    }),
  );
}

/** The oldest owed payments, without those in progress. */
export async function oldestOwed(
  { list }: Pick<Ledger, 'list'>,
  inProgress: ReadonlySet<string>,
  limit: number,
): Promise<Payment[]> {
  const size = Math.min(limit + inProgress.size, MAX_READ);
  const found: Payment[] = [];
  let page: Payment[] = [];
  do {
    const after = page.at(-1);
    page = await list({ state: 'owed', limit: size, ...(after ? { after } : {}) });
    found.push(...page.filter(({ id }) => !inProgress.has(id)));
  } while (page.length === size && found.length < limit);
  return found.slice(0, limit);
}
