import { sql } from '../sql.js';
import type { At } from './conditions.js';

/** One key per fee payer, so that servers which offer different ones do not overwrite each other. */
export const PREFIX = 'note:fee-payer ';

/**
 * The value is the time, ms since 1970, and the facilitator's name after a space, if it is known. The time has had thirteen digits since
 * 2001, so values compare as text. An earlier one changes nothing.
 */
export const offerFeePayer = ({ feePayer, now, suffix }: At & { feePayer: string; suffix: string }) =>
  sql`
    insert into meta (key, value) values (${PREFIX + feePayer}, cast(${now} as text) || ${suffix})
    on conflict (key) do update set value = excluded.value where meta.value < excluded.value`;

export const offeredFeePayers = ({ limit }: { limit: number }) =>
  sql<{
    key: string;
    value: string;
  }>`select key, value from meta where key like ${`${PREFIX}%`} order by value desc limit ${limit}`;

export const forgetFeePayers = ({ now, ms }: At & { ms: number }) =>
  sql`delete from meta where key like ${`${PREFIX}%`} and value < cast(${now} - ${ms} as text)`;
