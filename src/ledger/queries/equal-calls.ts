import { idBytes } from '../ids.js';
import { one, raw, sql } from '../sql.js';
import type { Query } from '../sql.js';
import type { PaymentRow } from '../schema.js';
import type { At, Call, Id, IdRow } from './conditions.js';

/*
 * Payments for the same call: same payer, operation and request, without identifier. A newly signed payment may be meant to fetch the
 * answer of an earlier one that was paid, or may have been, but was not written out. `written`: the answer went to the newest caller.
 */

const sameCall = ({ payer, operation, request_hash }: Call): Query =>
  sql`payer = ${payer} and request_hash = ${request_hash} and operation = ${operation} and identifier is null and alias_of is null`;

const answerable = (now: Query): Query => sql`(state <> 'delivered' or answer_expires_at > ${now})`;

/** Paid or possibly paid, not written, and not a separate sale, which is one that has had a single caller who is still present. */
export const redeemable = (p: Call & At): Query =>
  sql`
    ${sameCall(p)} and unwritten = 1 and state in ('settling', 'owed', 'delivered')
      and ${answerable(p.now)} and not (callers = 1 and caller_until > ${p.now})`;

const DECISIVE = [
  'id',
  'operation',
  'request_hash',
  'identifier',
  'state',
  'claim',
  'owner',
  'lease_until',
  'callers',
  'caller_until',
  'runs',
  'alias_of',
  'created_at',
  'written_to',
  'written_at',
  'answer_expires_at',
] as const;
const DECISIVE_COLUMNS = raw(DECISIVE.join(', '));

/** The columns that decide (reading the others would cost more), and the time at which this row and those before it had been locked. */
export type LockedRow = Pick<PaymentRow, (typeof DECISIVE)[number]> & { now: number };

/** Locks only the row itself, which has an identifier and therefore no equal payments. */
export const lockRow = (p: Id & At) =>
  one<LockedRow>`
    select locked.*, ${p.now} as now
    from (select ${DECISIVE_COLUMNS} from payments where id = ${idBytes(p.id)} for update) as locked`;

const equalToOwn = raw(
  `other.payer = own.payer and other.request_hash = own.request_hash and other.operation = own.operation
          and other.identifier is null and other.alias_of is null`,
);

/** The condition that the row called `own`, without identifier, has no equal payments that must be considered. */
export const hasNoEquals = ({ now }: At): Query => sql`not (
      exists (select 1 from payments as other
        where ${equalToOwn} and other.unwritten = 1 and other.state in ('claimed', 'settling', 'owed', 'delivered')
          and (other.state <> 'delivered' or other.answer_expires_at > ${now}) and other.id <> own.id)
      or exists (select 1 from payments as other
        where ${equalToOwn} and other.callers > 1 and other.written_at is not null and other.state = 'delivered'
          and other.answer_expires_at > ${now} and other.written_at > own.created_at))`;

/**
 * Locks the row and all equal payments that must be considered, in the order of their ids: those that were not written, and those with
 * several callers that were written after this payment came. (`+ 0` keeps the engines from scanning an index in order of time for a
 * limit that is rarely reached.) Their ids are found once, as an array: where PostgreSQL has waited for a row, it asks the condition again
 * of the changed row, and by some plans a join with them has lost it by then.
 */
export const lockEqualCalls = (p: Id & Call & At & { created_at: number; limit: number }) =>
  sql<LockedRow>`
    select locked.*, ${p.now} as now from (
      select ${DECISIVE_COLUMNS} from payments where id = any (array(
        select id from payments where id = ${idBytes(p.id)}
        union all
        select id from (select id from payments
          where ${sameCall(p)} and unwritten = 1 and state in ('claimed', 'settling', 'owed', 'delivered')
            and ${answerable(p.now)} order by created_at + 0 limit ${p.limit}) as awaited
        union all
        select id from (select id from payments
          where ${sameCall(p)} and callers > 1 and written_at is not null and state = 'delivered' and ${answerable(p.now)}
            and written_at > ${p.created_at} order by written_at + 0 limit ${p.limit}) as rewritten))
      order by id for update) as locked`;

/** Whether another payment with the identifier of this one was, or may have been, paid, and not paid back. */
export const identifierPaid = ({ id }: Id) =>
  one<IdRow>`
    select other.id from payments as own
    join payments as other on other.payer = own.payer and other.identifier = own.identifier
    where own.id = ${idBytes(id)} and own.identifier is not null and other.identifier is not null and other.id <> own.id
      and other.alias_of is null and other.state in ('settling', 'delivered', 'owed')
    limit 1`;

/** Makes a claim the alias of another payment. An alias is never settled and has neither a worker nor callers. */
export const bind = (p: Id & { alias_of: string }) =>
  one<IdRow>`
    update payments set alias_of = ${idBytes(p.alias_of)}, lease_until = 0, caller_until = 0
    where id = ${idBytes(p.id)} and state = 'claimed' and alias_of is null returning id`;

export const countAliases = ({ id }: Id) =>
  one<{ aliases: number }>`select count(*) as aliases from payments where alias_of = ${idBytes(id)}`;
