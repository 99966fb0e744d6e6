import { one, sql } from '../sql.js';
import type { Query } from '../sql.js';
import type { At } from './conditions.js';

/** One key per hint, so that servers with different hints do not overwrite each other's. */
const PREFIX = 'note:fee-payer ';

type HintRow = { key: string; value: string };

/** The inner cast is for SQLite, which binds numbers as floating point and would add `.0` to the text. */
export const timeText = (now: Query, ago = 0): Query => sql`cast(cast(${now} - ${ago} as bigint) as text)`;

/**
 * The value is the time (ms since 1970) and, after a space, the name of the facilitator, if known. The time has had thirteen digits since
 * 2001, so values can be compared as text. An earlier time does not replace a later one.
 */
export const offerHint = ({ hint, now, suffix }: At & { hint: string; suffix: string }) =>
  sql`
    insert into meta (key, value) values (${PREFIX + hint}, ${timeText(now)} || ${suffix})
    on conflict (key) do update set value = excluded.value where meta.value < excluded.value`;

export const offeredHints = ({ limit }: { limit: number }) =>
  sql<HintRow>`select key, value from meta where key like ${`${PREFIX}%`} order by value desc limit ${limit}`;

/** A hint that was offered within the last `ms`. */
export const recentHint = ({ hint, now, ms }: At & { hint: string; ms: number }) =>
  one<HintRow>`select key, value from meta where key = ${PREFIX + hint} and value >= ${timeText(now, ms)}`;

export const forgetHints = ({ now, ms }: At & { ms: number }) =>
  sql`delete from meta where key like ${`${PREFIX}%`} and value < ${timeText(now, ms)}`;

export function hintOf({ key, value }: HintRow): { hint: string; by?: string } {
  const hint = key.slice(PREFIX.length);
  const space = value.indexOf(' ');
  return space < 0 ? { hint } : { hint, by: value.slice(space + 1) };
}
