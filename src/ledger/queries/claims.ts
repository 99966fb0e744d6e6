import { idBytes } from '../ids.js';
import type { IdBytes } from '../ids.js';
import { one, sql } from '../sql.js';
import type { PaymentRow, PaymentView } from '../schema.js';
import { nextClaim, ours, SUM_OF_AMOUNTS, viewed } from './conditions.js';
import type { At, Call, Fence, Id, IdRow } from './conditions.js';
import { redeemable } from './equal-calls.js';

export const find = (p: Id & At) =>
  one<PaymentView>`select ${viewed(p.now)} from payments where id = ${idBytes(p.id)}`;

export const findToChange = ({ id }: Id) =>
  one<PaymentRow>`select * from payments where id = ${idBytes(id)} for update`;

/** Whether there is such a payment, and its payer's standing. Most have never been seen, and their rows are wide. */
export const summary = (p: Id & { payer: string }) =>
  one<{ known: number | null; seen: IdBytes | null }>`
    select (select known from payers where payer = ${p.payer}) as known,
      (select id from payments where id = ${idBytes(p.id)}) as seen`;

/** Claims of one payer are counted one after the other. PostgreSQL only: SQLite has one writer. */
export const lockPayer = ({ payer }: { payer: string }) =>
  one`select pg_advisory_xact_lock(hashtextextended(${payer}, 0))`;

/** The same for the payer of a payment. */
export const lockPayerOf = ({ id }: Id) =>
  one<{ created_at: number }>`
    select created_at, pg_advisory_xact_lock(hashtextextended(payer, 0)) from payments where id = ${idBytes(id)}`;

export const createdAt = ({ id }: Id) =>
  one<{ created_at: number }>`select created_at from payments where id = ${idBytes(id)}`;

export const sameIdentifier = (p: At & { payer: string; identifier: string; id: string }) =>
  one<PaymentView>`
    select ${viewed(p.now)} from payments
    where payer = ${p.payer} and identifier is not null and identifier = ${p.identifier} and id <> ${idBytes(p.id)}
      and alias_of is null
      and (state in ('settling', 'delivered', 'owed', 'refunded') or (state = 'claimed' and lease_until > ${p.now}))
    limit 1`;

export type ClaimView = {
  payments: number;
  amount: string;
  known: number | null;
  seen: IdBytes | null;
  earlier: IdBytes | null;
};

/**
 * All that a claim is judged by, in one look: the payer's unsettled payments and standing, whether this payment was seen before,
 * and the earlier sale of the same call that it would redeem now.
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

/** What a claim says about a payment, and for how long its worker and its caller count as present. */
export type NewClaim = Pick<
  PaymentRow,
  | 'operation'
  | 'request_hash'
  | 'request'
  | 'payer'
  | 'amount'
  | 'network'
  | 'x402_version'
  | 'signed_transaction'
  | 'identifier'
  | 'flow'
  | 'owner'
  | 'claim_slot'
  | 'claim_height'
> &
  Id & { fresh: number; lease_ms: number; live_ms: number };

export type ClaimedRow = { claim: number; runs: number; callers: number };

export const insert = (p: NewClaim & At) =>
  one<ClaimedRow>`
    insert into payments (id, operation, request_hash, request, payer, amount, network, x402_version, signed_transaction, identifier,
      flow, state, claim, owner, lease_until, callers, caller_until, runs, asks, claim_slot, claim_height, created_at)
    values (${idBytes(p.id)}, ${p.operation}, ${p.request_hash}, ${p.request}, ${p.payer}, ${p.amount}, ${p.network}, ${p.x402_version},
      ${p.signed_transaction}, ${p.identifier}, ${p.flow}, 'claimed', ${p.fresh}, ${p.owner}, ${p.now} + ${p.lease_ms}, 1,
      ${p.now} + ${p.live_ms}, 1, 0, ${p.claim_slot}, ${p.claim_height}, ${p.now})
    on conflict do nothing returning claim, runs, callers`;

/** A claim whose lease has ended is taken again, for whatever call: nothing of it was ever paid. */
export const retake = (p: NewClaim & At) =>
  one<ClaimedRow>`
    update payments set operation = ${p.operation}, request_hash = ${p.request_hash}, request = ${p.request},
      x402_version = ${p.x402_version}, signed_transaction = ${p.signed_transaction}, identifier = ${p.identifier},
      flow = ${p.flow}, callers = callers + 1, unwritten = 1, caller_until = ${p.now} + ${p.live_ms}, ${takenOver(p)}
    where id = ${idBytes(p.id)} and state = 'claimed' and alias_of is null and lease_until <= ${p.now}
    returning claim, runs, callers`;

/** The same by a request that waits for the row already: it stays the row of this call, and its callers are who they were. */
export const retakeForCaller = (p: NewClaim & At) =>
  one<ClaimedRow>`
    update payments set ${takenOver(p)}
    where id = ${idBytes(p.id)} and state = 'claimed' and alias_of is null and lease_until <= ${p.now}
      and caller_until > ${p.now} and operation = ${p.operation} and request_hash = ${p.request_hash}
    returning claim, runs, callers`;

/** Absence is judged from the last claim: an earlier height would call a payment dead too soon. */
const takenOver = (p: NewClaim & At) =>
  sql`claim = ${nextClaim(p.fresh)}, owner = ${p.owner}, lease_until = ${p.now} + ${p.lease_ms}, runs = runs + 1,
      claim_height = case when claim_height > ${p.claim_height} then claim_height else ${p.claim_height} end`;

/** Ends a claim and keeps the row; `uncounted`: how many of its runs never happened. */
export const free = (p: Fence & { uncounted: number }) =>
  one<IdRow>`
    update payments set lease_until = 0, runs = runs - ${p.uncounted}, claim = claim + 1
    where ${ours(p)} and state = 'claimed' and alias_of is null returning id`;

/** Ends the lease of what can't be settled by this claim. */
export const endLease = (p: Fence) =>
  one<IdRow>`update payments set lease_until = 0 where ${ours(p)} and state = 'claimed' returning id`;

/** The lease of a worker. */
export const hold = (p: Fence & At & { lease_ms: number }) =>
  one<IdRow>`
    update payments set lease_until = ${p.now} + ${p.lease_ms} where ${ours(p)} and alias_of is null returning id`;

/** Takes over what nobody holds and is beyond `claimed`. */
export const adopt = (p: Id & At & { fresh: number; owner: string; lease_ms: number }) =>
  one<PaymentView>`
    update payments set claim = ${nextClaim(p.fresh)}, owner = ${p.owner}, lease_until = ${p.now} + ${p.lease_ms}
    where id = ${idBytes(p.id)} and state <> 'claimed' and lease_until <= ${p.now} returning ${viewed(p.now)}`;

/**
 * Only the one server of a SQLite file may do this: it knows that all workers and callers of former ones are gone. What is decided and
 * has an identifier, or was written, has none that anybody asks for.
 */
export const endEverything = () => [
  sql`
    update payments indexed by payments_undecided set lease_until = 0, caller_until = 0
    where decided_at is null and state in ('claimed', 'settling', 'owed') and (lease_until > 0 or caller_until > 0)`,
  sql`
    update payments indexed by payments_unwritten set lease_until = 0, caller_until = 0
    where unwritten = 1 and alias_of is null and identifier is null and (lease_until > 0 or caller_until > 0)`,
];

/** Claims that can't be settled any more. An alias stays as long as what it stands for can still be answered. */
export const dead = (p: At & { height: number; limit: number }) =>
  sql<IdRow>`
    select p.id from payments as p
    where p.state = 'claimed' and p.decided_at is null and p.lease_until <= ${p.now} and p.claim_height < ${p.height}
      and not exists (
        select 1 from payments as target
        where target.id = p.alias_of and (target.state in ('settling', 'owed') or target.answer_expires_at is not null))
    limit ${p.limit} for update of p skip locked`;

export const remove = ({ id }: Id) =>
  one<IdRow>`delete from payments where id = ${idBytes(id)} and state = 'claimed' returning id`;
