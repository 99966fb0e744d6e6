import { idBytes } from '../ids.js';
import type { PaymentRow } from '../schema.js';
import { one, sql } from '../sql.js';
import type { At, Id } from './conditions.js';

export type EventRow = {
  seq: number;
  id: string;
  target: string;
  kind: string;
  subject: string;
  /** JSON. */
  facts: string;
  created_at: number;
  ends_at: number;
  attempts: number;
  next_attempt_at: number;
  done_at: number | null;
  outcome: string | null;
  answer: string | null;
};

type Target = { target: string };

/** Writes an event for each target that wants its kind, unless it was written before. */
export const tell = (
  p: At & { id: string; kind: string; subject: string; facts: string; lastMs: number },
) => sql`
  insert into outbox (id, target, kind, subject, facts, created_at, ends_at, next_attempt_at)
  select ${p.id}, name, ${p.kind}, ${p.subject}, ${p.facts}, ${p.now}, ${p.now} + ${p.lastMs}, ${p.now} from targets
  where (until is null or until > ${p.now}) and (kinds = '' or kinds like ${`% ${p.kind} %`})
  on conflict do nothing`;

export const targets = ({ now }: At) =>
  sql<{ name: string }>`select name from targets where until is null or until > ${now} order by name`;

export const dropTargets = () => sql`delete from targets where until is null`;

export const keepTarget = (p: { name: string; kinds: string; until: number | null }) => sql`
  insert into targets (name, kinds, until) values (${p.name}, ${p.kinds}, ${p.until})
  on conflict (name) do update set kinds = excluded.kinds, until = excluded.until`;

export const dropTarget = ({ target }: Target) => sql`delete from targets where name = ${target}`;

export const dropEventsOf = ({ target }: Target) => sql`delete from outbox where target = ${target}`;

/** Returns a row if a target has an event due. Runs before `takeEvents`, because usually no event is due, and a read costs less than a write. */
export const waits = ({ target, now }: Target & At) =>
  one<{ seq: number }>`
    select seq from outbox where target = ${target} and done_at is null and next_attempt_at <= ${now} limit 1`;

/**
 * Leases the oldest events that are due. For each subject, only the first undelivered event is taken, so that the events of one payment
 * arrive in order. If the server crashes, another one can take them after `leaseMs`.
 */
export const takeEvents = (p: Target & At & { limit: number; leaseMs: number }) => sql<EventRow>`
  with due as materialized (
    select seq from outbox as own
    where target = ${p.target} and done_at is null and next_attempt_at <= ${p.now} and lease_until <= ${p.now}
      and not exists (select 1 from outbox as earlier where earlier.target = own.target and earlier.subject = own.subject
        and earlier.done_at is null and earlier.seq < own.seq)
    order by seq limit ${p.limit} for update skip locked)
  update outbox set attempts = attempts + 1, lease_until = ${p.now} + ${p.leaseMs}
  where seq in (select seq from due) and lease_until <= ${p.now} and done_at is null returning *`;

type Attempt = { seq: number; attempt: number; answer: string };

/** Changes nothing if another server has taken the event since this attempt began, because taking it increases the number of attempts. */
export const toldEvent = (p: Attempt & At) => sql`
  update outbox set done_at = ${p.now}, lease_until = 0, outcome = 'told', answer = ${p.answer}
  where seq = ${p.seq} and attempts = ${p.attempt} and done_at is null`;

export const untoldEvent = (p: Attempt & At & { againMs: number }) => sql`
  update outbox set next_attempt_at = ${p.now} + ${p.againMs}, lease_until = 0, answer = ${p.answer}
  where seq = ${p.seq} and attempts = ${p.attempt} and done_at is null`;

export const resendEvent = (p: At & { seq: number; lastMs: number }) =>
  one<{ seq: number }>`
    update outbox set done_at = null, outcome = null, next_attempt_at = ${p.now}, ends_at = ${p.now} + ${p.lastMs}
    where seq = ${p.seq} returning seq`;

/** Ends the delivery of events that could not be delivered in time. */
export const endEvents = ({ now }: At) =>
  sql<{ target: string }>`
    update outbox set done_at = ${now}, lease_until = 0, outcome = 'given up'
    where done_at is null and ends_at <= ${now} returning target`;

export const forgetEvents = ({ now, keptMs }: At & { keptMs: number }) =>
  sql`delete from outbox where done_at is not null and done_at < ${now} - ${keptMs}`;

/** Deletes the oldest events beyond the newest `most`, delivered or not, so that an unreachable target can't fill the disk. */
export const dropOldest = ({ most }: { most: number }) =>
  sql<{ done_at: number | null }>`
    delete from outbox where seq <= (select max(seq) from outbox) - ${most} returning done_at`;

export const endLeases = () =>
  sql`update outbox set lease_until = 0 where done_at is null and lease_until > 0`;

export const newestEvents = (p: { limit: number; waitingFirst: boolean }) =>
  p.waitingFirst
    ? sql<EventRow>`select * from outbox where done_at is null order by seq limit ${p.limit}`
    : sql<EventRow>`select * from outbox order by seq desc limit ${p.limit}`;

export const countWaiting = () =>
  sql<{ target: string; events: number; since: number }>`
    select target, count(*) as events, min(created_at) as since from outbox where done_at is null group by target order by target`;

/** Sets the sequence past the numbers of events copied from another ledger. */
export const continueNumbers = () =>
  sql`select setval(pg_get_serial_sequence('outbox', 'seq'), (select coalesce(max(seq), 1) from outbox))`;

/** The payment data that events contain. */
export const paymentFacts = ({ id }: Id) =>
  one<Pick<PaymentRow, 'operation' | 'payer' | 'amount' | 'network' | 'settlement' | 'state' | 'flow'>>`
    select operation, payer, amount, network, settlement, state, flow from payments where id = ${idBytes(id)}`;
