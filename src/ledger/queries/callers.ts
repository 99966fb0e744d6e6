import { idBytes } from '../ids.js';
import { one, sql } from '../sql.js';
import type { PaymentView } from '../schema.js';
import { viewed } from './conditions.js';
import type { At, Id, IdRow } from './conditions.js';

/** The key of a caller: the payment's id and the number of the caller among the payment's callers. */
type CallerKey = Id & { number: number };

/** Adds a caller to a payment, unless it is an alias, released or refunded: no request can wait for such a payment. */
export const watch = (p: Id & At & { live_ms: number; request_id: string | null }) =>
  one<PaymentView>`
    update payments set callers = callers + 1, unwritten = 1, caller_until = ${p.now} + ${p.live_ms},
      request_id = coalesce(${p.request_id}, request_id)
    where id = ${idBytes(p.id)} and alias_of is null and state in ('claimed', 'settling', 'owed', 'delivered')
    returning ${viewed(p.now)}`;

/** Changes nothing if the caller has left or there is a newer one. */
export const renew = (p: CallerKey & At & { live_ms: number }) =>
  one<IdRow>`
    update payments set caller_until = ${p.now} + ${p.live_ms}
    where id = ${idBytes(p.id)} and callers = ${p.number} and caller_until > 0 and alias_of is null returning id`;

/** Renews callers, except those whose rows another transaction is changing. PostgreSQL only. */
export const renewUnlocked = (p: At & { callers: readonly CallerKey[]; live_ms: number }) =>
  sql<IdRow & { number: number }>`
    update payments set caller_until = ${p.now} + ${p.live_ms} where id = any (array(
      select id from payments join jsonb_array_elements(${keysOf(p.callers)}::jsonb) as caller
        on id = decode(caller ->> 0, 'hex') and callers = (caller ->> 1)::bigint
      where caller_until > 0 and alias_of is null for no key update of payments skip locked)) returning id, callers as number`;

const keysOf = (callers: readonly CallerKey[]): string =>
  JSON.stringify(callers.map(({ id, number }) => [id, number]));

export const leave = (p: CallerKey) =>
  one<IdRow>`update payments set caller_until = 0 where id = ${idBytes(p.id)} and callers = ${p.number} returning id`;

/** Only an answer that was written to the newest caller counts as written. */
export const written = (p: CallerKey & At & { ms_ago: number }) =>
  one<IdRow>`
    update payments set written_to = callers, unwritten = 0, written_at = ${p.now} - ${p.ms_ago}, caller_until = 0
    where id = ${idBytes(p.id)} and state = 'delivered' and callers = ${p.number} returning id`;

/**
 * Counts the fetch as one more caller, to which the answer was written. With more than one caller, `isWritten` compares the time of writing,
 * so a newly signed payment that arrived before the fetch can still redeem the answer.
 */
export const fetched = (p: CallerKey & At & { ms_ago: number }) =>
  one<IdRow>`
    update payments set callers = callers + 1, written_to = callers + 1, unwritten = 0, written_at = ${p.now} - ${p.ms_ago},
      caller_until = 0
    where id = ${idBytes(p.id)} and state = 'delivered' and callers = ${p.number} and unwritten = 1 returning id`;
