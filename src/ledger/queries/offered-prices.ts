import { sql } from '../sql.js';
import type { At } from './conditions.js';
import { timeText } from './offered-hints.js';

/** One key per price list, so that servers with the same prices share it and others do not overwrite it. */
const PREFIX = 'note:prices ';

/** The value is the time (ms since 1970, thirteen digits) and, after a space, the list. An earlier time does not replace a later one. */
export const offerPrices = ({ name, list, now }: At & { name: string; list: string }) =>
  sql`
    insert into meta (key, value) values (${PREFIX + name}, ${timeText(now)} || ${` ${list}`})
    on conflict (key) do update set value = excluded.value where meta.value < excluded.value`;

/** The lists that were offered within the last `ms`, most recent first. */
export const offeredPrices = ({ now, ms, limit }: At & { ms: number; limit: number }) =>
  sql<{ value: string }>`
    select value from meta where key like ${`${PREFIX}%`} and value >= ${timeText(now, ms)} order by value desc limit ${limit}`;

export const forgetPrices = ({ now, ms }: At & { ms: number }) =>
  sql`delete from meta where key like ${`${PREFIX}%`} and value < ${timeText(now, ms)}`;

export const listOf = ({ value }: { value: string }): string => value.slice(value.indexOf(' ') + 1);
