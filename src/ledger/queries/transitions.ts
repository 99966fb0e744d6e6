import { idBytes } from '../ids.js';
import { list, one, raw, sql } from '../sql.js';
import type { Query } from '../sql.js';
import type { PaymentView } from '../schema.js';
import { sourcesOf } from '../states.js';
import type { TransitionCause, State } from '../states.js';
import { nextClaim, ours, viewed } from './conditions.js';
import type { At, Fence, Id, IdRow } from './conditions.js';
import { hasNoEquals } from './equal-calls.js';
import { isReceiver } from './meta.js';

/** The states from which `TRANSITIONS` allows this change, as a condition: `state in ('settling', 'owed')`. */
function mayBecome(to: State, ground: TransitionCause): Query {
  return raw(`state in (${list(sourcesOf(to, ground).map(state => raw(`'${state}'`))).sql})`);
}

const MAY_SETTLE = mayBecome('settling', 'work');
const MAY_RELEASE = mayBecome('released', 'work');
const MAY_REFUND = mayBecome('refunded', 'operator');
const MAY_OWE = { work: mayBecome('owed', 'work'), chain: mayBecome('owed', 'chain') };
const MAY_DELIVER = { work: mayBecome('delivered', 'work'), chain: mayBecome('delivered', 'chain') };

/** `work`: this server's settle request succeeded; `chain`: the transfer was found on chain. */
type Proof = { by: 'work' | 'chain' };

/**
 * Changes the row only if the claim is the current one, the ledger may sell for this receiver, and the newest caller is present or the buyer
 * has already sent the transfer (`moved_after`). `alone`: changes the row only if there are no equal payments either.
 */
export const settle = (
  p: Fence &
    At & {
      settlement: string | null;
      signed_transaction: string | null;
      moved_after: number | null;
      alone: boolean;
      payTo: string;
    },
) =>
  one<{ answered: number | null }>`
    update payments as own set state = 'settling', asks = asks + 1, settling_at = ${p.now}, settlement = ${p.settlement},
      signed_transaction = coalesce(${p.signed_transaction}, signed_transaction), claim_slot = coalesce(${p.moved_after}, claim_slot)
    where ${ours(p)} and ${MAY_SETTLE} and alias_of is null and ${p.moved_after === null ? sql`caller_until > ${p.now}` : raw('true')}
      and ${isReceiver(p.payTo)} and ${p.alone ? hasNoEquals(p) : raw('true')}
    returning (select size from answers where payment = ${idBytes(p.id)}) as answered`;

/** Claims a payment for its second settle request once its lease has ended. If that request fails, the failure proves nothing about the first. */
export const askAgain = (p: Id & At & { fresh: number; owner: string; lease_ms: number }) =>
  one<PaymentView>`
    update payments set asks = asks + 1, claim = ${nextClaim(p.fresh)}, owner = ${p.owner}, lease_until = ${p.now} + ${p.lease_ms}
    where id = ${idBytes(p.id)} and state = 'settling' and asks = 1 and lease_until <= ${p.now} returning ${viewed(p.now)}`;

export const deliver = (p: Fence & At & Proof & { settlement: string; answer_expires_at: number }) =>
  one<Pick<PaymentView, 'payer' | 'callers'>>`
    update payments set state = 'delivered', settlement = ${p.settlement}, settled_at = coalesce(settled_at, ${p.now}),
      decided_at = ${p.now}, answer_expires_at = ${p.answer_expires_at}
    where ${ours(p)} and ${MAY_DELIVER[p.by]} returning payer, callers`;

/** Clears the expiry that a released payment has, so that its new answer does not expire before it is delivered. */
export const owe = (p: Fence & At & Proof & { settlement: string }) =>
  one<Pick<PaymentView, 'flow' | 'callers'>>`
    update payments set state = 'owed', settlement = ${p.settlement}, settled_at = ${p.now}, decided_at = null, reason = null,
      answer_expires_at = null
    where ${ours(p)} and ${MAY_OWE[p.by]} returning flow, callers`;

export const release = (p: Fence & At & { reason: string }) =>
  one<Pick<PaymentView, 'callers'>>`
    update payments set state = 'released', reason = ${p.reason}, decided_at = ${p.now}, lease_until = 0, caller_until = 0,
      answer_expires_at = ${p.now}
    where ${ours(p)} and ${MAY_RELEASE} returning callers`;

/** Increases the claim number, so that a worker on the order can no longer change the payment. */
export const refund = (p: Id & At & { reason: string }) =>
  one<IdRow>`
    update payments set state = 'refunded', reason = ${p.reason}, decided_at = ${p.now}, lease_until = 0, caller_until = 0,
      answer_expires_at = ${p.now}, claim = claim + 1
    where id = ${idBytes(p.id)} and ${MAY_REFUND} returning id`;

/** Removes the request. A delivered answer, which is deleted at the same time, counts as expired now. */
export const removeRequest = (p: Id & At) =>
  one<IdRow>`
    update payments set request = null,
      answer_expires_at = case when state = 'delivered' then cast(${p.now} as bigint) else answer_expires_at end
    where id = ${idBytes(p.id)} returning id`;

export const audited = (p: Id & At & { signed_transaction: string }) =>
  one<IdRow>`
    update payments set audited_at = ${p.now}, signed_transaction = ${p.signed_transaction} where id = ${idBytes(p.id)} returning id`;
