import { one, raw } from '../sql.js';

/** How far the log of the primary has come. Fails on a replica. */
export const walPosition = () =>
  one<{ position: string }>`select cast(pg_current_wal_lsn() as text) as position`;

/** `behind`: 0 if it has all of the log up to there. `age`: of the last commit that it has, in ms. */
export const replicaState = ({ position }: { position: string }) =>
  one<{ replica: number; behind: number; age: number | null }>`
    select ${raw('case when pg_is_in_recovery() then 1 else 0 end')} as replica,
      cast(coalesce(case when pg_last_wal_replay_lsn() >= cast(${position} as pg_lsn) then 0 else 1 end, 1) as bigint) as behind,
      cast(extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp()) * 1000 as bigint) as age`;
