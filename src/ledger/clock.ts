import type { Dialect } from './engine.js';
import { raw, sql } from './sql.js';
import type { Query } from './sql.js';

/**
 * The time at which a statement runs, in milliseconds since 1970, as SQL. On PostgreSQL it is the database's clock, which all servers
 * share. (SQL's `now()` is the start of the transaction, which may since have waited for a lock.) On SQLite it is the server's clock.
 */
export type Now = () => Query;

/** @param now replaces the clock in tests, so that no result depends on how long a statement takes */
export function clockOf(dialect: Dialect, now?: () => number): Now {
  if (now) return () => sql`cast(${now()} as bigint)`;
  if (dialect.name === 'sqlite') return () => sql`${Date.now()}`;
  return () => DATABASE_CLOCK;
}

const DATABASE_CLOCK = raw('floor(extract(epoch from clock_timestamp()) * 1000)::bigint');
