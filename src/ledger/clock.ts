import type { Dialect } from './engine.js';
import { sql } from './sql.js';
import type { Query } from './sql.js';

/**
 * The moment at which a statement runs, in milliseconds since 1970, as SQL. On PostgreSQL the database's clock, which all servers share:
 * not `now()`, which is when the transaction began, before it waited for a lock. On SQLite the clock of its one server.
 */
export type Now = () => Query;

/** @param now the process's clock, where it is not `Date.now`: PostgreSQL's is then taken to be as far off as this one is */
export function clockOf(dialect: Dialect, now?: () => number): Now {
  if (dialect.name === 'sqlite') return () => sql`${(now ?? Date.now)()}`;
  return () => {
    const skew = now ? Math.round(now() - Date.now()) : 0;
    return sql`(floor(extract(epoch from clock_timestamp()) * 1000)::bigint + ${skew})`;
  };
}
