import { list, one, sql } from '../sql.js';
import type { Query } from '../sql.js';

/*
 * Advisory locks with which servers on PostgreSQL detect each other. The numbers are arbitrary, but must be
 * the same in all versions of this program.
 */

/** The lock that every server holds. Its second key is a hash of the schema's name. */
export const PRESENCE_LOCK = 8403;
/** A lock whose second key is the schema version that the server knows. Servers of version 1.0 do not hold it. */
export const VERSION_LOCK = 8405;

/** A lock whose second key is a hash of the schema's name and of what the server uses, such as the version of an operation's tables. */
export const USE_LOCK = 8406;

/** Counts the servers on this ledger by their presence locks. */
const PRESENT = sql`
    select count(*) as servers from pg_locks as present
    where present.locktype = 'advisory' and present.classid = ${PRESENCE_LOCK} and present.granted
      and present.database = (select oid from pg_database where datname = current_database())
      and present.objid = (hashtext(current_schema())::bigint & 4294967295)::oid and present.mode = 'ShareLock'`;

/** The number of servers on this ledger, this one included. */
export const servers = () => one<{ servers: number }>`${PRESENT}`;

/** The number of servers on this ledger that only know schema versions before `least`. */
export const serversBehind = ({ least }: { least: number }) =>
  one<{ servers: number }>`${PRESENT}
      and not exists (
        select 1 from pg_locks as known
        where known.pid = present.pid and known.locktype = 'advisory' and known.classid = ${VERSION_LOCK}
          and known.objid::bigint >= ${least} and known.granted)`;

/** The number of servers on this ledger that hold a lock for any of these uses. */
export const serversUsing = ({ uses }: { uses: readonly string[] }) =>
  one<{ servers: number }>`${PRESENT}
      and exists (
        select 1 from pg_locks as shown
        where shown.pid = present.pid and shown.locktype = 'advisory' and shown.classid = ${USE_LOCK} and shown.granted
          and shown.objid in (${list(uses.map(hashed))}))`;

const hashed = (use: string): Query =>
  sql`(hashtext(current_schema() || ' ' || ${use})::bigint & 4294967295)::oid`;

/** The channel of the servers of one ledger. The name of a channel may have at most 63 bytes. */
export const CHANNEL = `'coinslot_' || md5(current_schema())`;
