import { idBytes } from '../ids.js';
import { one, raw, sql } from '../sql.js';
import type { Query } from '../sql.js';
import type { PaymentRow } from '../schema.js';
import type { State } from '../states.js';
import { REPAID, SUM_OF_AMOUNTS } from './conditions.js';

export type SoldRow = Pick<
  PaymentRow,
  'id' | 'operation' | 'payer' | 'amount' | 'state' | 'repaid' | 'settlement'
> & { settled_at: number };

type Place = { settled_at: number; id: string };

/** Sales settled at `from` or later that come before the sale `before`; only those of `payer` if it is set. */
type Range = { payer: string | undefined; from: number; before: Place };

const SOLD = raw('id, operation, payer, amount, state, repaid, settlement, settled_at');
const NEWEST_FIRST = raw('order by settled_at desc, id desc');

/** Uses the index of sales, or that of a payer's sales. */
const inRange = ({ payer, from, before }: Range): Query =>
  sql`
    settled_at is not null and alias_of is null ${payer === undefined ? raw('') : sql`and payer = ${payer}`}
      and settled_at >= ${from} and settled_at <= ${before.settled_at}
      and (settled_at < ${before.settled_at} or id < ${idBytes(before.id)})`;

export const salesIn = (p: Range & { limit: number }) =>
  sql<SoldRow>`select ${SOLD} from payments where ${inRange(p)} ${NEWEST_FIRST} limit ${p.limit}`;

/** Searches the newest `searched` sales, and returns the newest `limit` that match; null matches any operation or state. */
export const salesMatching = (
  p: Range & { operation: string | null; state: State | null; searched: number; limit: number },
) =>
  sql<SoldRow>`
    select ${SOLD} from (${salesIn({ ...p, limit: p.searched })}) as newest
    where operation = coalesce(${p.operation}, operation) and state = coalesce(${p.state}, state)
    ${NEWEST_FIRST} limit ${p.limit}`;

/** The position of the oldest sale that `salesMatching` searched; no row if it searched them all. */
export const lastSearched = (p: Range & { searched: number }) =>
  one<{ settled_at: number; id: PaymentRow['id'] }>`
    select settled_at, id from payments where ${inRange(p)} ${NEWEST_FIRST} limit 1 offset ${p.searched - 1}`;

type TotalsRow = {
  sales: number;
  amount: string;
  repaid: string;
  first: number | null;
  last: number | null;
};

/** Sums over the newest `limit` sales to a payer. */
export const payerTotals = ({ payer, limit }: { payer: string; limit: number }) =>
  one<TotalsRow>`
    select count(*) as sales, ${SUM_OF_AMOUNTS} as amount, cast(coalesce(sum(cast(${REPAID} as bigint)), 0) as text) as repaid,
      min(settled_at) as first, max(settled_at) as last
    from (
      select amount, repaid, state, settled_at from payments
      where payer = ${payer} and settled_at is not null and alias_of is null order by settled_at desc limit ${limit}
    ) as newest`;
