import { idBytes } from '../ids.js';
import { raw, sql } from '../sql.js';
import type { Query } from '../sql.js';
import type { PaymentView } from '../schema.js';
import { viewed } from './conditions.js';
import type { At } from './conditions.js';

/** The page after the payment `id`, which was settled or sent for settlement at `since`. */
type Page = At & { since: number; id: string; settled_before: number; limit: number };

/** The oldest payments of one kind. Each kind has an index. */
const oldest = (p: Page, kind: Query, since: Query): Query =>
  sql`
    (select ${viewed(p.now)} from payments
     where ${kind} and ${since} >= ${p.since} and (${since} > ${p.since} or id > ${idBytes(p.id)})
     order by ${since}, id limit ${p.limit})`;

const SETTLED = raw('settled_at is not null and audited_at is null');
const SETTLED_AT = raw('settled_at');
const RELEASED = raw("state = 'released' and audited_at is null");
const SETTLING = raw("state = 'settling' and decided_at is null");
const SETTLING_AT = raw('settling_at');
/** `+ 0` makes SQLite choose the index of undecided payments, which is small. */
const SORTED_BY_SETTLING_AT = raw('settling_at + 0');

/** Payments whose outcome is not yet final on chain, at most `limit` of each kind. See `maintenanceOf`. */
export const openFates = (p: Page) =>
  sql<PaymentView>`
    select * from ${oldest(p, sql`${SETTLING} and lease_until <= ${p.now}`, SORTED_BY_SETTLING_AT)} as settling
    union all
    select * from ${oldest(p, sql`${RELEASED} and lease_until <= ${p.now}`, SETTLING_AT)} as released
    union all
    select * from ${oldest(p, sql`${SETTLED} and settled_at <= ${p.settled_before}`, SETTLED_AT)} as settled`;
