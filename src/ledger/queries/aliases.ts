import { one, sql } from '../sql.js';
import type { Query } from '../sql.js';
import type { PaymentRow } from '../schema.js';
import { ours } from './conditions.js';
import type { Call, Fence, Id } from './conditions.js';

/** Payments a newly signed one may attach to: paid or possibly paid, not written out, and nobody waits for the answer. */
const redeemable = (now: number): Query =>
  sql`
    written_at is null and alias_of is null and state in ('settling', 'owed', 'delivered') and identifier is null
      and (caller_until <= ${now} or owner_gone(owner)) and (state <> 'delivered' or answer_expires_at > ${now})`;

/** What a newly signed payment for the same call redeems. */
export const earlierSale = (p: Call & { now: number }): Query =>
  sql`${redeemable(p.now)}
      and payer = ${p.payer} and request_hash = ${p.request_hash} and operation = ${p.operation}
    order by created_at limit 1`;

export const attachable = (p: Call & { now: number }) =>
  one<PaymentRow>`select * from payments where ${earlierSale(p)}`;

export const findToAttach = (p: Id & { now: number }) =>
  one<PaymentRow>`select * from payments where ${redeemable(p.now)} and id = ${p.id} for update`;

export const attach = (p: Fence & { alias_of: string }) =>
  one<Id>`
    update payments set alias_of = ${p.alias_of}, lease_until = 0, caller_until = 0
    where ${ours(p)} and state = 'claimed' returning id`;

export const countAliases = ({ id }: Id) =>
  one<{ aliases: number }>`select count(*) as aliases from payments where alias_of = ${id}`;

export const written = (p: Id & { now: number }) =>
  one<Id>`
    update payments set written_at = ${p.now}, lease_until = 0, caller_until = 0
    where id = ${p.id} and state = 'delivered' and written_at is null returning id`;

export const callerGone = ({ id }: Id) =>
  one<Id>`
    update payments set caller_until = 0 where id = ${id} and caller_until > 0 and alias_of is null returning id`;
