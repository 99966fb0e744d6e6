import { one, sql } from '../sql.js';

/*
 * Advisory locks with which servers on PostgreSQL show their presence. The numbers are arbitrary but must be the same in all versions
 * of this program.
 */

/** Its second key is a hash of the schema's name. */
export const PRESENCE_LOCK = 8403;
/** Its second key is the version of the schema that the server knows. Version 1.0 has none. */
export const VERSION_LOCK = 8405;

/** Counts the locks with which servers on this ledger show that they are there. */
const PRESENT = sql`
    select count(*) as servers from pg_locks as present
    where present.locktype = 'advisory' and present.classid = ${PRESENCE_LOCK} and present.granted
      and present.database = (select oid from pg_database where datname = current_database())
      and present.objid = (hashtext(current_schema())::bigint & 4294967295)::oid and present.mode = 'ShareLock'`;

/** The number of servers on this ledger, this one included. */
export const servers = () => one<{ servers: number }>`${PRESENT}`;

/** The number of servers on this ledger that do not know this version of its schema. */
export const serversBehind = ({ version }: { version: number }) =>
  one<{ servers: number }>`${PRESENT}
      and not exists (
        select 1 from pg_locks as known
        where known.pid = present.pid and known.locktype = 'advisory' and known.classid = ${VERSION_LOCK}
          and known.objid = ${version} and known.granted)`;
