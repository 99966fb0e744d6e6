import { one, raw } from '../sql.js';

/** The primary's current position in its write-ahead log. Fails on a replica. */
export const walPosition = () =>
  one<{ position: string }>`select cast(pg_current_wal_lsn() as text) as position`;

/**
 * `behind`: 0 if the replica has replayed the log up to `position`, otherwise 1. `age`: the age of the last
 * replayed commit, in ms.
 */
export const replicaState = ({ position }: { position: string }) =>
  one<{ replica: number; behind: number; age: number | null }>`
    select ${raw('case when pg_is_in_recovery() then 1 else 0 end')} as replica,
      cast(coalesce(case when pg_last_wal_replay_lsn() >= cast(${position} as pg_lsn) then 0 else 1 end, 1) as bigint) as behind,
      cast(extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000 as bigint) as age`;
