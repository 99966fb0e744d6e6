import { idBytes } from '../ids.js';
import type { IdBytes } from '../ids.js';
import { raw, sql } from '../sql.js';
import type { Query } from '../sql.js';

export type Id = { id: string };
export type IdRow = { id: IdBytes };

/** The moment at which the statement runs; see clock.ts. */
export type At = { now: Query };

/** What every fenced change repeats: the row, and the claim that entitles to change it. */
export type Fence = { id: string; claim: number; owner: string };

/** What makes two payments without identifier payments for the same call. */
export type Call = { payer: string; operation: string; request_hash: string };

export const ours = ({ id, claim, owner }: Fence): Query =>
  sql`id = ${idBytes(id)} and claim = ${claim} and owner = ${owner}`;

/** A row with what is true of it at this moment: the columns of a `PaymentView`. */
export const viewed = (now: Query): Query =>
  sql`*, case when lease_until > ${now} then 1 else 0 end as leased, case when caller_until > ${now} then 1 else 0 end as attended`;

/** Grows with every claim, and is a number that no claim of this owner had before. */
export const nextClaim = (fresh: number): Query =>
  sql`case when claim >= ${fresh} then claim + 1 else ${fresh} end`;

export const SUM_OF_AMOUNTS = raw('cast(coalesce(sum(cast(amount as bigint)), 0) as text)');
