import { idBytes } from '../ids.js';
import { one } from '../sql.js';
import type { PaymentView } from '../schema.js';
import { viewed } from './conditions.js';
import type { At, Id, IdRow } from './conditions.js';

/** A request that waits for a row, by its number among the callers of that row. */
type CallerKey = Id & { number: number };

/** Adds a caller to a row. Requests can't wait for an alias or for a row in a final state. */
export const watch = (p: Id & At & { live_ms: number; request_id: string | null }) =>
  one<PaymentView>`
    update payments set callers = callers + 1, unwritten = 1, caller_until = ${p.now} + ${p.live_ms},
      request_id = coalesce(${p.request_id}, request_id)
    where id = ${idBytes(p.id)} and alias_of is null and state in ('claimed', 'settling', 'owed', 'delivered')
    returning ${viewed(p.now)}`;

/** A caller that has left, or whose row has a newer caller, is never renewed. */
export const renew = (p: CallerKey & At & { live_ms: number }) =>
  one<IdRow>`
    update payments set caller_until = ${p.now} + ${p.live_ms}
    where id = ${idBytes(p.id)} and callers = ${p.number} and caller_until > 0 and alias_of is null returning id`;

export const leave = (p: CallerKey) =>
  one<IdRow>`update payments set caller_until = 0 where id = ${idBytes(p.id)} and callers = ${p.number} returning id`;

/** Only an answer that was written to the newest caller counts as written. */
export const written = (p: CallerKey & At & { ms_ago: number }) =>
  one<IdRow>`
    update payments set written_to = callers, unwritten = 0, written_at = ${p.now} - ${p.ms_ago}, caller_until = 0
    where id = ${idBytes(p.id)} and state = 'delivered' and callers = ${p.number} returning id`;

/**
 * A fetch counts as one more caller that the answer was written to, so that a payment that came before it still redeems the answer (see
 * `isWritten`).
 */
export const fetched = (p: CallerKey & At & { ms_ago: number }) =>
  one<IdRow>`
    update payments set callers = callers + 1, written_to = callers + 1, unwritten = 0, written_at = ${p.now} - ${p.ms_ago},
      caller_until = 0
    where id = ${idBytes(p.id)} and state = 'delivered' and callers = ${p.number} and unwritten = 1 returning id`;
