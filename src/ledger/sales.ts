import type { Connection } from './connection.js';
import { execute } from './engine.js';
import type { TransactionBody } from './engine.js';
import { idOf } from './ids.js';
import { repaidOf } from './payment.js';
import * as queries from './queries/sales.js';
import type { State } from './states.js';

const MAX_LISTED = 1_000;
/** SQLite reads this many sales in about 20 ms, on the server's only thread. */
const MAX_SEARCHED = 10_000;
const MAX_OF_A_PAYER = 10_000;

/** The position of a sale in the order of sales; `settledAt` in ms since 1970. */
export type SalePlace = { settledAt: number; id: string };

/** Which sales to list. Times in ms since 1970, `from` included, `to` not. */
export type SalesWanted = {
  operation?: string;
  state?: State;
  payer?: string;
  from?: number;
  to?: number;
  /** Only sales before this one. */
  before?: SalePlace;
  /** The maximum number of sales: 1 000 or less, by default 1 000. */
  limit?: number;
};

/** A payment that was settled. Amounts in atomic units; `settlement` is the signature of the transaction. */
export type SoldPayment = ReturnType<typeof soldOf>;

/** Lists of sales for the operator. All functions reject with a LedgerFault. */
export function salesOf({ engine }: Connection) {
  return {
    /**
     * Sales, newest first. With a filter by operation or state, one call searches 10 000 sales.
     * @returns `next`: the `before` of the next page; undefined if there are no more
     */
    listSales: (wanted: SalesWanted): Promise<{ sales: SoldPayment[]; next: SalePlace | undefined }> =>
      engine.read(() => listed(wanted)),
    /** Sums over the newest 10 000 sales to a payer; `first` and `last` in ms since 1970, undefined if there are none. */
    payerTotals: async (payer: string) => {
      const [row] = await engine.read(() => execute(queries.payerTotals({ payer, limit: MAX_OF_A_PAYER })));
      const { sales = 0, amount = '0', repaid = '0', first, last } = row ?? {};
      return {
        sales: Number(sales),
        amount: BigInt(amount),
        repaid: BigInt(repaid),
        first: first ?? undefined,
        last: last ?? undefined,
        isWhole: Number(sales) < MAX_OF_A_PAYER,
      };
    },
  };
}

function* listed(
  wanted: SalesWanted,
): TransactionBody<{ sales: SoldPayment[]; next: SalePlace | undefined }> {
  const { operation = null, state = null, payer, from = 0, to, limit = MAX_LISTED } = wanted;
  const isFiltered = operation !== null || state !== null;
  const range = { payer, from, before: earliest(wanted.before, to) };
  const most = Math.min(limit, MAX_LISTED);
  const search = { ...range, operation, state, searched: MAX_SEARCHED, limit: most };
  const rows = yield* execute(
    isFiltered ? queries.salesMatching(search) : queries.salesIn({ ...range, limit: most }),
  );
  const sales = rows.map(soldOf);
  const last = sales.at(-1);
  if (last && sales.length === most) return { sales, next: { settledAt: last.settledAt, id: last.id } };
  if (!isFiltered) return { sales, next: undefined };
  const [searched] = yield* execute(queries.lastSearched(search));
  return { sales, next: searched && { settledAt: searched.settled_at, id: idOf(searched.id) } };
}

function earliest(
  before: SalePlace | undefined,
  to = Number.MAX_SAFE_INTEGER,
): { settled_at: number; id: string } {
  return before && before.settledAt < to
    ? { settled_at: before.settledAt, id: before.id }
    : { settled_at: to, id: '' };
}

function soldOf({ settled_at: settledAt, ...row }: queries.SoldRow) {
  return { ...row, id: idOf(row.id), amount: BigInt(row.amount), repaid: repaidOf(row), settledAt };
}
