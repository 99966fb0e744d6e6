import { one, sql } from '../sql.js';
import type { PaymentRow } from '../schema.js';
import { earlierSale } from './aliases.js';
import { ours, SUM_OF_AMOUNTS } from './conditions.js';
import type { Call, Fence, Id } from './conditions.js';

/** A row as a claim makes it, or makes it again. */
export type NewClaim = Omit<
  PaymentRow,
  | 'state'
  | 'asks'
  | 'settlement'
  | 'reason'
  | 'alias_of'
  | 'settling_at'
  | 'settled_at'
  | 'decided_at'
  | 'written_at'
  | 'audited_at'
  | 'answer_expires_at'
>;

export const find = ({ id }: Id) => one<PaymentRow>`select * from payments where id = ${id}`;

export const findToChange = ({ id }: Id) =>
  one<PaymentRow>`select * from payments where id = ${id} for update`;

/** Claims of one payer are counted one after the other. PostgreSQL only: SQLite has one writer. */
export const lockPayer = ({ payer }: { payer: string }) =>
  one`select pg_advisory_xact_lock(hashtextextended(${payer}, 0))`;

export const sameIdentifier = (p: { payer: string; identifier: string; id: string; now: number }) =>
  one<PaymentRow>`
    select * from payments
    where payer = ${p.payer} and identifier is not null and identifier = ${p.identifier} and id <> ${p.id}
      and alias_of is null
      and (state in ('settling', 'delivered', 'owed', 'refunded') or (state = 'claimed' and lease_until > ${p.now}))
    limit 1`;

export type ClaimView = {
  payments: number;
  amount: string;
  known: number | null;
  seen: string | null;
  earlier: string | null;
};

/**
 * All that a claim is judged by, in one look: the payer's unsettled payments and standing, whether this payment was seen before,
 * and the earlier sale of the same call that a new signature redeems.
 */
export const claimView = (p: Call & { id: string; now: number }) =>
  one<ClaimView>`
    select count(*) as payments, ${SUM_OF_AMOUNTS} as amount,
      (select known from payers where payers.payer = ${p.payer}) as known,
      (select id from payments where id = ${p.id}) as seen,
      (select id from payments where ${earlierSale(p)}) as earlier
    from payments
    where payer = ${p.payer} and written_at is null and alias_of is null and state in ('claimed', 'settling')
      and (state = 'settling' or lease_until > ${p.now})`;

export const insert = (p: NewClaim) =>
  one<Id>`
    insert into payments (id, operation, request_hash, request, payer, amount, network, x402_version, signed_transaction, identifier,
      flow, state, claim, owner, lease_until, caller_until, runs, asks, claim_slot, claim_height, created_at)
    values (${p.id}, ${p.operation}, ${p.request_hash}, ${p.request}, ${p.payer}, ${p.amount}, ${p.network}, ${p.x402_version},
      ${p.signed_transaction}, ${p.identifier}, ${p.flow}, 'claimed', ${p.claim}, ${p.owner}, ${p.lease_until}, ${p.caller_until},
      ${p.runs}, 0, ${p.claim_slot}, ${p.claim_height}, ${p.created_at})
    on conflict do nothing returning id`;

/** A claim whose lease has ended is taken over whole: nothing of it was ever paid. */
export const retake = (p: NewClaim) =>
  one<Id>`
    update payments set operation = ${p.operation}, request_hash = ${p.request_hash}, request = ${p.request},
      x402_version = ${p.x402_version}, signed_transaction = ${p.signed_transaction}, identifier = ${p.identifier},
      flow = ${p.flow}, claim = ${p.claim}, owner = ${p.owner}, lease_until = ${p.lease_until},
      caller_until = ${p.caller_until}, runs = ${p.runs}, claim_height = ${p.claim_height}
    where id = ${p.id} and state = 'claimed' returning id`;

/** The lease on a row whose caller waits. */
export const lease = (p: Fence & { lease_until: number }) =>
  one<Id>`
    update payments set lease_until = ${p.lease_until}, caller_until = ${p.lease_until}
    where ${ours(p)} and alias_of is null returning id`;

/** The lease of a worker, who is no caller. */
export const hold = (p: Fence & { lease_until: number }) =>
  one<Id>`
    update payments set lease_until = ${p.lease_until} where ${ours(p)} and alias_of is null returning id`;

/** Ends a claim; `runs` is the number of runs that still count. */
export const endClaim = (p: Fence & { runs: number }) =>
  one<Id>`
    update payments set lease_until = 0, caller_until = 0, runs = ${p.runs}, claim = claim + 1
    where ${ours(p)} and state = 'claimed' returning id`;

/** The caller stays as gone, or as present, as it was, unless the server is gone that it waited at. */
export const adopt = (p: Fence & { lease_until: number }) =>
  one<Id>`
    update payments set claim = ${p.claim}, owner = ${p.owner}, lease_until = ${p.lease_until},
      caller_until = case when owner_gone(owner) then 0 else caller_until end
    where id = ${p.id} and state <> 'claimed' returning id`;

/** Only the one server of a SQLite file may do this: it knows that all former owners are gone. */
export const endLeases = () =>
  sql`
    update payments set lease_until = 0, caller_until = 0
    where written_at is null and (lease_until > 0 or caller_until > 0)`;

/** Claims that can't be settled any more. An alias stays as long as what it stands for can still be answered. */
export const dead = (p: { height: number; now: number; limit: number }) =>
  sql<Id>`
    select p.id from payments as p
    where p.state = 'claimed' and p.decided_at is null and p.lease_until <= ${p.now} and p.claim_height < ${p.height}
      and not exists (
        select 1 from payments as target
        where target.id = p.alias_of and (target.state in ('settling', 'owed') or target.answer_expires_at is not null))
    limit ${p.limit} for update of p skip locked`;

export const remove = ({ id }: Id) =>
  one<Id>`delete from payments where id = ${id} and state = 'claimed' returning id`;
