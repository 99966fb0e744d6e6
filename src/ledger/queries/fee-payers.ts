import { sql } from '../sql.js';

/** One note for each fee payer, so that servers that offer different ones at once overwrite none of them. */
export const PREFIX = 'note:fee-payer ';

/** `at`: ms since 1970, of thirteen digits as they have been since 2001, so that they compare as text. An earlier time changes nothing. */
export const offerFeePayer = ({ feePayer, at }: { feePayer: string; at: string }) =>
  sql`
    insert into meta (key, value) values (${PREFIX + feePayer}, ${at})
    on conflict (key) do update set value = excluded.value where meta.value < excluded.value`;

export const offeredFeePayers = ({ limit }: { limit: number }) =>
  sql<{
    key: string;
    value: string;
  }>`select key, value from meta where key like ${`${PREFIX}%`} order by value desc limit ${limit}`;

export const forgetFeePayers = ({ before }: { before: string }) =>
  sql`delete from meta where key like ${`${PREFIX}%`} and value < ${before}`;
