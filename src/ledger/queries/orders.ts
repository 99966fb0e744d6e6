import { idBytes } from '../ids.js';
import type { IdBytes } from '../ids.js';
import { one, raw, sql } from '../sql.js';
import { viewed } from './conditions.js';
import type { At } from './conditions.js';
import type { OrderRow, PaymentView } from '../schema.js';

type Key = { payment: string };
type KeyRow = { payment: IdBytes };

export const findOrder = ({ payment }: Key) =>
  one<OrderRow>`select * from orders where payment = ${idBytes(payment)}`;

/** Locks the row of an order until the commit. Required before any change to the order or its parts. */
export const findOrderToChange = ({ payment }: Key) =>
  one<OrderRow>`select * from orders where payment = ${idBytes(payment)} for update`;

/**
 * Orders of owed payments whose work has parts. The payment's state is checked too, because a crash between delivery and the end of the order
 * leaves an open order of a delivered payment.
 */
export const openOrders = ({ limit, operation }: { limit: number; operation?: string | undefined }) =>
  sql<OrderRow>`
    select orders.* from orders
    where finished_at is null and wanted > 0
      and payment in (select id from payments where state = 'owed' and decided_at is null
        ${operation === undefined ? raw('') : sql`and operation = ${operation}`})
    order by created_at, payment limit ${limit}`;

export const insertOrder = (p: Key & At & { request: string; wanted: number; deadline: number }) =>
  sql`
    insert into orders (payment, request, wanted, deadline, attempts, created_at, finished_at)
    values (${idBytes(p.payment)}, ${p.request}, ${p.wanted}, ${p.deadline}, 1, ${p.now}, null)
    on conflict do nothing`;

/** `attempt`: ends only this attempt, so that a worker whose lease has expired can't end a later one. */
export const finishOrder = (p: Key & At & { attempt?: number | undefined }) =>
  one<KeyRow>`
    update orders set finished_at = ${p.now}, next_attempt_at = ${p.now}
    where payment = ${idBytes(p.payment)} and finished_at is null
      ${p.attempt === undefined ? raw('') : sql`and attempts = ${p.attempt}`} returning payment`;

/** `againMs`: ms until a call may start the next attempt; null: only the operator may. */
export const failAttempt = (p: Key & At & { attempt: number; failure: string; againMs: number | null }) =>
  one<KeyRow>`
    update orders set finished_at = ${p.now}, failure = ${p.failure},
      next_attempt_at = ${p.againMs === null ? raw('null') : sql`${p.now} + ${p.againMs}`}
    where payment = ${idBytes(p.payment)} and attempts = ${p.attempt} and finished_at is null returning payment`;

/**
 * Counts a start of the work, whether it is the first one or follows an interruption. If the work is interrupted, it may be started again after
 * `againMs`, or after `lateMs` once the deadline has passed. The attempt's deadline is set at its first start.
 */
export const beginAttempt = (p: Key & At & { deadline: number; againMs: number; lateMs: number }) =>
  one<OrderRow>`
    update orders set starts = starts + 1,
      next_attempt_at = case when deadline > ${p.now} then ${p.now} + ${p.againMs} else ${p.now} + ${p.lateMs} end,
      deadline = case when starts = 0 then ${p.deadline} else deadline end
    where payment = ${idBytes(p.payment)} and finished_at is null and next_attempt_at <= ${p.now} returning *`;

/** `starts` stays at least 1, because the deadline was set at the first start. */
export const handOver = ({ payment }: Key) =>
  one<KeyRow>`
    update orders set starts = case when starts > 1 then starts - 1 else starts end, next_attempt_at = 0
    where payment = ${idBytes(payment)} and finished_at is null returning payment`;

/** Whether interrupted work is paused: no server holds the order, and none may start it yet. */
const interrupted = ({ payment, now }: Key & At) =>
  sql`(finished_at is null and next_attempt_at > ${now}
      and exists (select 1 from payments where id = ${idBytes(payment)} and lease_until <= ${now}))`;

/**
 * With `due`, the order is reopened only if a call may start the next attempt now. Without it, the operator
 * reopens the order and need not wait.
 */
export const reopenOrder = (p: Key & At & { deadline: number; due: boolean }) =>
  one<OrderRow>`
    update orders set attempts = attempts + 1, tries = tries + 1, starts = 0, next_attempt_at = 0, deadline = ${p.deadline},
      finished_at = null, extended = 0
    where payment = ${idBytes(p.payment)} and request <> ''
      and ${p.due ? sql`finished_at is not null and next_attempt_at <= ${p.now}` : sql`(finished_at is not null or ${interrupted(p)})`}
    returning *`;

/** Extends only the given attempt, so that a worker whose lease has expired can't extend a later one. */
export const extendOrder = (p: Key & { attempt: number; deadline: number }) =>
  one<OrderRow>`
    update orders set attempts = attempts + 1, deadline = ${p.deadline}, extended = 1
    where payment = ${idBytes(p.payment)} and attempts = ${p.attempt} and finished_at is null and extended = 0 returning *`;

export const setDone = (p: Key & { done: number }) =>
  sql`update orders set done = ${p.done} where payment = ${idBytes(p.payment)}`;

/**
 * Whether an order was given up at least `afterMs` ago. Only the operator can start another attempt at such
 * an order.
 */
const givenUp = (p: At & { afterMs: number }) =>
  sql`finished_at is not null and next_attempt_at is null and finished_at <= ${p.now} - ${p.afterMs}`;

export const givenUpOrder = (p: Key & At & { afterMs: number }) =>
  one<KeyRow>`
    select payment from orders where payment = ${idBytes(p.payment)} and ${givenUp(p)} for update`;

/** The owed payments of given-up orders. Begins after the payment `id`, which was claimed at `created_at`. Uses the index of undecided payments. */
export const givenUpOrders = (p: At & { afterMs: number; created_at: number; id: string; limit: number }) =>
  sql<PaymentView>`
    select ${viewed(p.now)} from payments
    where state = 'owed' and decided_at is null and alias_of is null
      and created_at >= ${p.created_at} and (created_at > ${p.created_at} or id > ${idBytes(p.id)})
      and id in (select payment from orders where ${givenUp(p)})
    order by created_at + 0, id limit ${p.limit}`;

/** Gives up an order, so that no further attempt can be started. */
export const rejectOrder = (p: Key & At & { failure: string }) =>
  one<KeyRow>`
    update orders set finished_at = ${p.now}, next_attempt_at = null, failure = ${p.failure}
    where payment = ${idBytes(p.payment)} returning payment`;

export const removeOrderRequest = ({ payment }: Key) =>
  sql`update orders set request = '' where payment = ${idBytes(payment)}`;
