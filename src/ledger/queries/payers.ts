import { sql } from '../sql.js';
import type { At } from './conditions.js';

/** Writes nothing for a payer that is already known. */
export const knowPayer = (p: At & { payer: string }) =>
  sql`
    insert into payers (payer, known, delivered_at, refused_at) values (${p.payer}, 1, ${p.now}, null)
    on conflict (payer) do update set known = 1, delivered_at = excluded.delivered_at where payers.known = 0`;

export const refusePayer = (p: At & { payer: string }) =>
  sql`update payers set known = 0, refused_at = ${p.now} where payer = ${p.payer}`;
