import { idBytes } from '../ids.js';
import { list, one, raw, sql } from '../sql.js';
import type { Query } from '../sql.js';
import type { PaymentRow, PaymentView } from '../schema.js';
import type { State } from '../states.js';
import { REPAID, SUM_OF_AMOUNTS, viewed } from './conditions.js';
import type { At } from './conditions.js';

export const counts = () =>
  sql<{ state: State; payments: number; amount: string }>`
    select state, count(*) as payments, ${SUM_OF_AMOUNTS} as amount from payments where alias_of is null group by state`;

type UndecidedRow = { state: 'settling' | 'owed'; payments: number; amount: string; since: number };

/** The payments whose money moved or may have moved, and whose answer was not delivered. Uses the index of undecided payments. */
export const undecided = () =>
  sql<UndecidedRow>`
    select state, count(*) as payments, ${SUM_OF_AMOUNTS} as amount,
      min(coalesce(settled_at, settling_at, created_at)) as since
    from payments where decided_at is null and alias_of is null and state in ('settling', 'owed') group by state`;

/** The number of payments that are being settled. */
export const unresolved = () =>
  one<{ payments: number }>`
    select count(*) as payments from payments where state = 'settling' and decided_at is null and alias_of is null`;

type TurnoverRow = {
  day: number;
  operation: string;
  state: State;
  own: number;
  payments: number;
  amount: string;
  repaid: string;
};

/** Settled payments by UTC day of settlement. `own`: 1 for payments of the given payers. */
export const turnover = ({ own }: { own: readonly string[] }) =>
  sql<TurnoverRow>`
    select day, operation, state, own, count(*) as payments, ${SUM_OF_AMOUNTS} as amount,
      cast(coalesce(sum(cast(repaid as bigint)), 0) as text) as repaid
    from (
      select settled_at / 86400000 as day, operation, state, amount, ${REPAID} as repaid, ${isOneOf(own)} as own
      from payments where settled_at is not null and alias_of is null
    ) as settled
    group by day, operation, state, own
    order by day, operation, state, own`;

const isOneOf = (payers: readonly string[]): Query =>
  payers.length === 0 ? sql`0` : sql`case when payer in (${list(payers)}) then 1 else 0 end`;

export type SaleRow = Pick<PaymentRow, 'id' | 'operation' | 'payer' | 'amount' | 'state' | 'repaid'> & {
  settled_at: number;
};

const SALE = raw('id, operation, payer, amount, state, repaid, settled_at');
const IS_SALE = raw('settled_at is not null and alias_of is null');

/** Settled payments in order of settlement. This query and the next one use the index of sales. */
export const salesAfter = (p: { settled_at: number; id: string; limit: number }) =>
  sql<SaleRow>`
    select ${SALE} from payments
    where ${IS_SALE} and settled_at >= ${p.settled_at} and (settled_at > ${p.settled_at} or id > ${idBytes(p.id)})
    order by settled_at, id limit ${p.limit}`;

export const newestSales = ({ limit }: { limit: number }) =>
  sql<SaleRow>`select ${SALE} from payments where ${IS_SALE} order by settled_at desc, id desc limit ${limit}`;

export const firstSlot = () => one<{ slot: number | null }>`select min(claim_slot) as slot from payments`;

/**
 * Filters of a list; null means any. Lists only payments whose lease ended before `leased`. Begins after the payment `id`, which was claimed at
 * `created_at`.
 */
export type Listed = At & {
  payer: string | null;
  operation: string | null;
  leased: Query;
  created_at: number;
  id: string;
  limit: number;
};

const OLDEST_FIRST = raw('asc');
const NEWEST_FIRST = raw('desc');
const direction = (newest: boolean): Query => (newest ? NEWEST_FIRST : OLDEST_FIRST);

/**
 * Adds a condition only if a value is given. PostgreSQL would assume that few rows meet `payer = coalesce(null, payer)`, and would scan the
 * whole table instead of reading the rows in their order.
 */
const given = (column: string, value: string | null): Query =>
  value === null ? raw('true') : sql`${raw(column)} = ${value}`;

const listed = (p: Listed): Query =>
  sql`
    ${given('payer', p.payer)} and ${given('operation', p.operation)}
      and lease_until <= ${p.leased} and created_at >= ${p.created_at}
      and (created_at > ${p.created_at} or id > ${idBytes(p.id)})`;

/** The state is compared first, because it excludes most rows of a scan. */
export const listPayments = (p: Listed & { state: State | null }, newest: boolean) =>
  sql<PaymentView>`
    select ${viewed(p.now)} from payments where ${given('state', p.state)} and ${listed(p)}
    order by created_at ${direction(newest)}, id ${direction(newest)} limit ${p.limit}`;

/** Uses the index of payments without a final state, because sorting those few (`+ 0`) is cheaper than scanning all payments in order. */
export const listUndecided = (p: Listed & { state: State }, newest: boolean) =>
  sql<PaymentView>`
    select ${viewed(p.now)} from payments where state = ${p.state} and decided_at is null and ${listed(p)}
    order by created_at + 0 ${direction(newest)}, id ${direction(newest)} limit ${p.limit}`;

/** The earliest claim of the sales of a period. It may be much older than the period, if the transfer was found on chain later. */
export const firstClaimOf = (p: { from: number; to: number }) =>
  one<{ created_at: number | null }>`
    select min(created_at + 0) as created_at from payments where ${IS_SALE} and settled_at >= ${p.from} and settled_at < ${p.to}`;

/**
 * Payments by the time at which they are booked: the time of settlement or, while that is unknown, of the
 * first claim.
 */
export const listBooked = (p: Listed & { state: State | null; from: number; to: number }) =>
  sql<PaymentView>`
    select ${viewed(p.now)} from payments
    where ${given('state', p.state)} and ${listed(p)} and settling_at is not null and alias_of is null
      and created_at < ${p.to} and coalesce(settled_at, created_at) >= ${p.from}
      and coalesce(settled_at, created_at) < ${p.to}
    order by created_at, id limit ${p.limit}`;
