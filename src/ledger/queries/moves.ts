import { list, one, raw, sql } from '../sql.js';
import type { Query } from '../sql.js';
import type { PaymentRow } from '../schema.js';
import { sourcesOf } from '../states.js';
import type { Ground, State } from '../states.js';
import { ours } from './conditions.js';
import type { Fence, Id } from './conditions.js';

/** The table of legal moves decides from which states a move starts: `state in ('settling', 'owed')`. */
function mayBecome(to: State, ground: Ground): Query {
  return raw(`state in (${list(sourcesOf(to, ground).map(state => raw(`'${state}'`))).sql})`);
}

const MAY_SETTLE = mayBecome('settling', 'work');
const MAY_RELEASE = mayBecome('released', 'work');
const MAY_REFUND = mayBecome('refunded', 'operator');
const MAY_OWE = { work: mayBecome('owed', 'work'), chain: mayBecome('owed', 'chain') };
const MAY_DELIVER = { work: mayBecome('delivered', 'work'), chain: mayBecome('delivered', 'chain') };

/** `work`: our own ask succeeded; `chain`: the transfer was found there. */
type Proof = { by: 'work' | 'chain' };

/** Since the lease ended, the caller may have bought the same again: what is only claimed can't be attached to. */
export const settle = (
  p: Fence & { settlement: string | null; signed_transaction: string | null; now: number },
) =>
  one<{ answered: number | null }>`
    update payments set state = 'settling', asks = asks + 1, settling_at = ${p.now}, settlement = ${p.settlement},
      signed_transaction = coalesce(${p.signed_transaction}, signed_transaction)
    where ${ours(p)} and ${MAY_SETTLE} and alias_of is null and lease_until > ${p.now}
    returning (select size from answers where payment = ${p.id}) as answered`;

export const askAgain = (p: Fence) =>
  one<Id>`update payments set asks = asks + 1 where ${ours(p)} and state = 'settling' returning id`;

export const deliver = (p: Fence & Proof & { settlement: string; now: number; answer_expires_at: number }) =>
  one<{ payer: string }>`
    update payments set state = 'delivered', settlement = ${p.settlement}, settled_at = coalesce(settled_at, ${p.now}),
      decided_at = ${p.now}, answer_expires_at = ${p.answer_expires_at}
    where ${ours(p)} and ${MAY_DELIVER[p.by]} returning payer`;

/** A released payment's answer had expired; the one that is made now must not. */
export const owe = (p: Fence & Proof & { settlement: string; now: number }) =>
  one<Id>`
    update payments set state = 'owed', settlement = ${p.settlement}, settled_at = ${p.now}, decided_at = null, reason = null,
      answer_expires_at = null
    where ${ours(p)} and ${MAY_OWE[p.by]} returning id`;

export const release = (p: Fence & { reason: string; now: number }) =>
  one<Id>`
    update payments set state = 'released', reason = ${p.reason}, decided_at = ${p.now}, lease_until = 0, caller_until = 0,
      answer_expires_at = ${p.now}
    where ${ours(p)} and ${MAY_RELEASE} returning id`;

/** The claim number grows, so that a worker of this order moves nothing any more. */
export const refund = (p: Id & { reason: string; now: number }) =>
  one<Id>`
    update payments set state = 'refunded', reason = ${p.reason}, decided_at = ${p.now}, lease_until = 0, caller_until = 0,
      answer_expires_at = ${p.now}, claim = claim + 1
    where id = ${p.id} and ${MAY_REFUND} returning id`;

export const audited = (p: Id & { now: number }) =>
  one<Id>`update payments set audited_at = ${p.now} where id = ${p.id} returning id`;

export const unaudited = (p: { limit: number; before: number; settled_at: number; id: string }) =>
  sql<PaymentRow>`
    select * from payments
    where settled_at is not null and audited_at is null and settled_at <= ${p.before} and settled_at >= ${p.settled_at}
      and (settled_at > ${p.settled_at} or id > ${p.id})
    order by settled_at, id limit ${p.limit}`;
