import { one, sql } from '../sql.js';
import type { Query } from '../sql.js';
import type { At } from './conditions.js';

/** One key per hint, so that servers which offer different ones do not overwrite each other. */
const PREFIX = 'note:fee-payer ';

type HintRow = { key: string; value: string };

/** SQLite would write a number from outside with a fraction. */
export const timeText = (now: Query, ago = 0): Query => sql`cast(cast(${now} - ${ago} as bigint) as text)`;

/**
 * The value is the time, ms since 1970, and the name of the facilitator after a space, if known. The time has had thirteen digits since
 * 2001, so values compare as text. An earlier one changes nothing.
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
