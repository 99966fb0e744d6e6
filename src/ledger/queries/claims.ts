import { idBytes } from '../ids.js';
import type { IdBytes } from '../ids.js';
import { one, sql } from '../sql.js';
import type { PaymentRow, PaymentView } from '../schema.js';
import { isNotAllRepaid, nextClaim, ours, SUM_OF_AMOUNTS, viewed } from './conditions.js';
import type { At, Call, Fence, Id, IdRow } from './conditions.js';
import { redeemable } from './equal-calls.js';

export const find = (p: Id & At) =>
  one<PaymentView>`select ${viewed(p.now)} from payments where id = ${idBytes(p.id)}`;

export const findToChange = ({ id }: Id) =>
  one<PaymentRow>`select * from payments where id = ${idBytes(id)} for update`;

/** Whether a payment exists, and whether its payer is known. Cheaper than reading the wide row, since most payments are new. */
export const summary = (p: Id & { payer: string }) =>
  one<{ known: number | null; seen: IdBytes | null }>`
    select (select known from payers where payer = ${p.payer}) as known,
      (select id from payments where id = ${idBytes(p.id)}) as seen`;

/** Makes claims of the same payer wait until the commit. PostgreSQL only; SQLite has a single writer. */
export const lockPayer = ({ payer }: { payer: string }) =>
  one`select pg_advisory_xact_lock(hashtextextended(${payer}, 0))`;

/** Locks several payers, always in the same order, so that transactions can't deadlock. */
export const lockPayers = ({ payers }: { payers: readonly string[] }) =>
  sql`
    select pg_advisory_xact_lock(key) from (
      select hashtextextended(payer, 0) as key from jsonb_array_elements_text(${JSON.stringify(payers)}::jsonb) as payer order by key offset 0
    ) as ordered`;

/** Locks the given payers, except those that another transaction has locked. @returns the locked ones */
export const tryPayers = ({ payers }: { payers: readonly string[] }) =>
  sql<{ payer: string }>`
    select payer from jsonb_array_elements_text(${JSON.stringify(payers)}::jsonb) as payer
    where pg_try_advisory_xact_lock(hashtextextended(payer, 0))`;

/** Locks the payer of a payment, as `lockPayer` does. */
export const lockPayerOf = ({ id }: Id) =>
  one<{ created_at: number }>`
    select created_at, pg_advisory_xact_lock(hashtextextended(payer, 0)) from payments where id = ${idBytes(id)}`;

export const createdAt = ({ id }: Id) =>
  one<{ created_at: number }>`select created_at from payments where id = ${idBytes(id)}`;

/** Another payment by this payer with this identifier. A refunded payment bought nothing, so its identifier can be used again. */
export const sameIdentifier = (p: At & { payer: string; identifier: string; id: string }) =>
  one<PaymentView>`
    select ${viewed(p.now)} from payments
    where payer = ${p.payer} and identifier is not null and identifier = ${p.identifier} and id <> ${idBytes(p.id)}
      and alias_of is null
      and (state in ('settling', 'delivered', 'owed') or (state = 'claimed' and lease_until > ${p.now}))
    limit 1`;

export type ClaimView = {
  payments: number;
  amount: string;
  known: number | null;
  seen: IdBytes | null;
  earlier: IdBytes | null;
};

/**
 * What a claim depends on, in one query: the payer's unsettled payments, whether the payer is known, whether the ledger has this payment,
 * and the earlier sale of the same call that the payment would redeem now.
 */
export const claimView = (p: Call & Id & At) =>
  one<ClaimView>`
    select count(*) as payments, ${SUM_OF_AMOUNTS} as amount,
      (select known from payers where payers.payer = ${p.payer}) as known,
      (select id from payments where id = ${idBytes(p.id)}) as seen,
      (select id from payments where ${redeemable(p)} order by created_at + 0, id limit 1) as earlier
    from payments
    where payer = ${p.payer} and decided_at is null and alias_of is null and state in ('claimed', 'settling')
      and (state = 'settling' or lease_until > ${p.now})`;

/** The columns of a new claim, the length of its lease, and how long its caller counts as present. */
export type NewClaim = Pick<
  PaymentRow,
  | 'operation'
  | 'request_hash'
  | 'request'
  | 'payer'
  | 'amount'
  | 'network'
  | 'x402_version'
  | 'method'
  | 'signed_transaction'
  | 'identifier'
  | 'request_id'
  | 'flow'
  | 'owner'
  | 'claim_slot'
  | 'claim_height'
> &
  Id & { fresh: number; lease_ms: number; live_ms: number };

export type ClaimedRow = { claim: number; runs: number; callers: number };

export const insert = (p: NewClaim & At) =>
  one<ClaimedRow>`
    insert into payments (id, operation, request_hash, request, payer, amount, network, x402_version, method, signed_transaction,
      identifier, flow, state, claim, owner, lease_until, callers, caller_until, runs, asks, claim_slot, claim_height, created_at,
      request_id)
    values (${idBytes(p.id)}, ${p.operation}, ${p.request_hash}, ${p.request}, ${p.payer}, ${p.amount}, ${p.network}, ${p.x402_version},
      ${p.method}, ${p.signed_transaction}, ${p.identifier}, ${p.flow}, 'claimed', ${p.fresh}, ${p.owner}, ${p.now} + ${p.lease_ms}, 1,
      ${p.now} + ${p.live_ms}, 1, 0, ${p.claim_slot}, ${p.claim_height}, ${p.now}, ${p.request_id})
    on conflict do nothing returning claim, runs, callers`;

/** Claims an unsettled payment again once its lease has ended, for the same or another call. */
export const retake = (p: NewClaim & At) =>
  one<ClaimedRow>`
    update payments set operation = ${p.operation}, request_hash = ${p.request_hash}, request = ${p.request},
      x402_version = ${p.x402_version}, method = ${p.method}, signed_transaction = ${p.signed_transaction}, identifier = ${p.identifier},
      request_id = ${p.request_id}, flow = ${p.flow}, callers = callers + 1, unwritten = 1, caller_until = ${p.now} + ${p.live_ms}, ${takenOver(p)}
    where id = ${idBytes(p.id)} and state = 'claimed' and alias_of is null and lease_until <= ${p.now}
    returning claim, runs, callers`;

/**
 * Like `retake`, for a request that is already waiting for the payment. The payment keeps its call and its
 * callers.
 */
export const retakeForCaller = (p: NewClaim & At) =>
  one<ClaimedRow>`
    update payments set ${takenOver(p)}
    where id = ${idBytes(p.id)} and state = 'claimed' and alias_of is null and lease_until <= ${p.now}
      and caller_until > ${p.now} and operation = ${p.operation} and request_hash = ${p.request_hash}
    returning claim, runs, callers`;

/** `claim_height` never decreases: a transfer's absence is proven from it, and a lower value would make the payment count as expired too soon. */
const takenOver = (p: NewClaim & At) =>
  sql`claim = ${nextClaim(p.fresh)}, owner = ${p.owner}, lease_until = ${p.now} + ${p.lease_ms}, runs = runs + 1,
      claim_height = case when claim_height > ${p.claim_height} then claim_height else ${p.claim_height} end`;

/** Ends a claim and keeps the row. `uncounted`: the number of runs that do not count towards the limit. */
export const free = (p: Fence & { uncounted: number }) =>
  one<IdRow>`
    update payments set lease_until = 0, runs = runs - ${p.uncounted}, claim = claim + 1
    where ${ours(p)} and state = 'claimed' and alias_of is null returning id`;

/** Ends the lease of a row that this claim can't settle. */
export const endLease = (p: Fence) =>
  one<IdRow>`update payments set lease_until = 0 where ${ours(p)} and state = 'claimed' returning id`;

export const hold = (p: Fence & At & { lease_ms: number }) =>
  one<IdRow>`
    update payments set lease_until = ${p.now} + ${p.lease_ms} where ${ours(p)} and alias_of is null returning id`;

/**
 * Takes over a payment past `claimed` whose lease has ended, unless it is owed and being refunded in full,
 * because then its work must not continue.
 */
export const adopt = (p: Id & At & { fresh: number; owner: string; lease_ms: number }) =>
  one<PaymentView>`
    update payments set claim = ${nextClaim(p.fresh)}, owner = ${p.owner}, lease_until = ${p.now} + ${p.lease_ms}
    where id = ${idBytes(p.id)} and state <> 'claimed' and lease_until <= ${p.now} and ${NOT_BEING_REPAID} returning ${viewed(p.now)}`;

const NOT_BEING_REPAID = sql`(repaying = '0' or state <> 'owed' or ${isNotAllRepaid()})`;

/**
 * Ends all leases and removes all callers. Only the server of a SQLite file may do this, when it starts, because all earlier workers and
 * callers are gone then. Skips finished payments that have an identifier or whose answer was written, because their leases and callers no
 * longer matter.
 */
export const endEverything = () => [
  sql`
    update payments indexed by payments_undecided set lease_until = 0, caller_until = 0
    where decided_at is null and state in ('claimed', 'settling', 'owed') and (lease_until > 0 or caller_until > 0)`,
  sql`
    update payments indexed by payments_unwritten set lease_until = 0, caller_until = 0
    where unwritten = 1 and alias_of is null and identifier is null and (lease_until > 0 or caller_until > 0)`,
];

/** Claims that can no longer be settled. An alias is kept while the answer that it redeems may still be made, or is still stored. */
export const dead = (p: At & { before: number; limit: number }) =>
  sql<IdRow>`
    select p.id from payments as p
    where p.state = 'claimed' and p.decided_at is null and p.lease_until <= ${p.now} and p.claim_height < ${p.before}
      and not exists (
        select 1 from payments as target
        where target.id = p.alias_of and (target.state in ('settling', 'owed') or target.answer_expires_at is not null))
    limit ${p.limit} for update of p skip locked`;

export const remove = ({ id }: Id) =>
  one<IdRow>`delete from payments where id = ${idBytes(id)} and state = 'claimed' returning id`;
