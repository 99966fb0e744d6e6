import { idBytes } from '../ids.js';
import type { IdBytes } from '../ids.js';
import { raw, sql } from '../sql.js';
import type { Query } from '../sql.js';

export type Id = { id: string };
export type IdRow = { id: IdBytes };

/** The time at which the statement runs; see clock.ts. */
export type At = { now: Query };

/**
 * Identifies a row and the claim that may change it. A server whose claim is no longer the current one can't
 * change the row.
 */
export type Fence = { id: string; claim: number; owner: string };

/** Two payments without a payment-identifier are for the same call if these columns are equal. */
export type Call = { payer: string; operation: string; request_hash: string };

export const ours = ({ id, claim, owner }: Fence): Query =>
  sql`id = ${idBytes(id)} and claim = ${claim} and owner = ${owner}`;

/** The columns of a `PaymentView`. */
export const viewed = (now: Query): Query =>
  sql`*, case when lease_until > ${now} then 1 else 0 end as leased, case when caller_until > ${now} then 1 else 0 end as attended`;

/** A claim number that grows with every claim and that no earlier claim of this owner had. */
export const nextClaim = (fresh: number): Query =>
  sql`case when claim >= ${fresh} then claim + 1 else ${fresh} end`;

export const SUM_OF_AMOUNTS = raw('cast(coalesce(sum(cast(amount as bigint)), 0) as text)');

/** The same as `repaidOf`, in SQL. */
export const REPAID = raw("case when state = 'refunded' and repaid = '0' then amount else repaid end");

/** Whether less than the whole amount has been or is being sent back. @param row the prefix of its columns */
export const isNotAllRepaid = (row = ''): Query =>
  raw(`cast(${row}repaid as bigint) + cast(${row}repaying as bigint) < cast(${row}amount as bigint)`);
