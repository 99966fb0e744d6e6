import { one, sql } from '../sql.js';
import type { At } from './conditions.js';

/** A quota: at most this many uses until `endsAt` (ms since 1970). */
export type Use = { name: string; atMost: number; endsAt: number };

/**
 * Counts one use, starting from 1 in a new period. If the stored period is a later one, because another server's clock is ahead, the use counts in
 * that later period. Returns no row if no uses are left.
 */
export const takeUse = ({ name, atMost, endsAt }: Use) =>
  one<{ used: number }>`
    insert into uses (name, used, ends_at) values (${name}, 1, ${endsAt})
    on conflict (name) do update set
      used = case when uses.ends_at < excluded.ends_at then 1 else uses.used + 1 end,
      ends_at = case when uses.ends_at < excluded.ends_at then excluded.ends_at else uses.ends_at end
    where uses.ends_at < excluded.ends_at or uses.used < ${atMost}
    returning used`;

/** Takes one use back, unless its period has ended. */
export const giveUseBack = ({ name, endsAt }: Pick<Use, 'name' | 'endsAt'>) =>
  sql`update uses set used = used - 1 where name = ${name} and ends_at = ${endsAt} and used > 0`;

export const forgetUses = ({ now, limit }: At & { limit: number }) =>
  sql`
    delete from uses where name in
      (select name from uses where ends_at < ${now} order by ends_at limit ${limit} for update skip locked)`;
