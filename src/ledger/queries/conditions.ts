import { raw, sql } from '../sql.js';
import type { Query } from '../sql.js';

export type Id = { id: string };

/** What every fenced change repeats: the row, and the claim that entitles to change it. */
export type Fence = { id: string; claim: number; owner: string };

/** What makes two payments without identifier payments for the same call. */
export type Call = { payer: string; operation: string; request_hash: string };

export const ours = ({ id, claim, owner }: Fence): Query =>
  sql`id = ${id} and claim = ${claim} and owner = ${owner}`;

export const SUM_OF_AMOUNTS = raw('cast(coalesce(sum(cast(amount as bigint)), 0) as text)');
