import type { Dialect } from './engine.js';
import { raw, sql } from './sql.js';
import type { Query } from './sql.js';

/**
 * The moment at which a statement runs, in milliseconds since 1970, as SQL. On PostgreSQL the database's clock, which all servers share:
 * not `now()`, which is when the transaction began, before it waited for a lock. On SQLite the clock of its one server.
 */
export type Now = () => Query;

/** @param now a clock of the process that takes the place of both, for tests: with it nothing depends on how long a statement takes */
export function clockOf(dialect: Dialect, now?: () => number): Now {
  if (now) return () => sql`cast(${now()} as bigint)`;
  if (dialect.name === 'sqlite') return () => sql`${Date.now()}`;
  return () => DATABASE_CLOCK;
}

const DATABASE_CLOCK = raw('floor(extract(epoch from clock_timestamp()) * 1000)::bigint');
