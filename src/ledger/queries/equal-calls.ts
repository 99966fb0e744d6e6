import { idBytes } from '../ids.js';
import { one, raw, sql } from '../sql.js';
import type { Query } from '../sql.js';
import type { PaymentRow } from '../schema.js';
import { isNotAllRepaid } from './conditions.js';
import type { At, Call, Id, IdRow } from './conditions.js';

/*
 * Equal payments are those for the same call: same payer, operation and request, without a payment-identifier. If a buyer got no answer, it may
 * sign a new payment for the same call. That payment then fetches the answer of the earlier one, if the earlier one was or may have been
 * paid, but its answer was not written to its newest caller. A delivered payment whose money has been or is being sent back in full is not
 * redeemed, because its buyer would then have both the money and the answer.
 */

const sameCall = ({ payer, operation, request_hash }: Call): Query =>
  sql`payer = ${payer} and request_hash = ${request_hash} and operation = ${operation} and identifier is null and alias_of is null`;

const answerable = (now: Query): Query =>
  sql`(state <> 'delivered' or answer_expires_at > ${now}
      and ${isNotAllRepaid()})`;

/**
 * Whether an equal payment can redeem the row: it was or may have been paid, its answer was not written, and it is not a separate sale, that
 * is, one whose only caller is still present.
 */
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

/**
 * The columns that the decision needs (reading all columns would cost more), and the time at which the row was read, which is after the row and all
 * rows before it were locked.
 */
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

const otherIsKept = isNotAllRepaid('other.');

/** Whether the row called `own`, which has no identifier, has no equal payments that must be considered. */
export const hasNoEquals = ({ now }: At): Query => sql`not (
      exists (select 1 from payments as other
        where ${equalToOwn} and other.unwritten = 1 and other.state in ('claimed', 'settling', 'owed', 'delivered')
          and (other.state <> 'delivered' or other.answer_expires_at > ${now} and ${otherIsKept}) and other.id <> own.id)
      or exists (select 1 from payments as other
        where ${equalToOwn} and other.callers > 1 and other.written_at is not null and other.state = 'delivered'
          and other.answer_expires_at > ${now} and ${otherIsKept} and other.written_at > own.created_at))`;

/**
 * Locks the row and all equal payments that must be considered, in the order of their ids: those whose answer was not written, and those with
 * several callers whose answer was written after this payment arrived. (`+ 0` keeps the engines from scanning an index in order of time for
 * a limit that is rarely reached.) The ids are collected in an array, not joined: after waiting for a locked row, PostgreSQL evaluates the
 * condition again on the changed row, and with some plans a join would then lose that row.
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

/** Returns a row if another payment with the same identifier was or may have been paid, and was not refunded. */
export const identifierPaid = ({ id }: Id) =>
  one<IdRow>`
    select other.id from payments as own
    join payments as other on other.payer = own.payer and other.identifier = own.identifier
    where own.id = ${idBytes(id)} and own.identifier is not null and other.identifier is not null and other.id <> own.id
      and other.alias_of is null and other.state in ('settling', 'delivered', 'owed')
    limit 1`;

/** Makes a claimed payment an alias of another one. An alias is never settled, and has neither a worker nor callers. */
export const bind = (p: Id & { alias_of: string }) =>
  one<IdRow>`
    update payments set alias_of = ${idBytes(p.alias_of)}, lease_until = 0, caller_until = 0
    where id = ${idBytes(p.id)} and state = 'claimed' and alias_of is null returning id`;

export const countAliases = ({ id }: Id) =>
  one<{ aliases: number }>`select count(*) as aliases from payments where alias_of = ${idBytes(id)}`;
