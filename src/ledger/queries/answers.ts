import { idBytes } from '../ids.js';
import { one, sql } from '../sql.js';
import type { AnswerRow } from '../schema.js';
import type { State } from '../states.js';
import { ours } from './conditions.js';
import type { At, Fence, Id, IdRow } from './conditions.js';

/** The columns of a new answer. */
export type NewAnswer = Omit<AnswerRow, 'payment' | 'saved_at'> & { payment: string };

/** Locks the claim until the commit, so that no other worker takes it over while its answer is written. */
export const holdForAnswer = (p: Fence) =>
  one<{ state: State; size: number | null }>`
    select payments.state, answers.size from payments left join answers on answers.payment = payments.id
    where ${ours(p)} and state in ('claimed', 'settling', 'released', 'owed')
    for update of payments`;

export const saveAnswer = (p: NewAnswer & At) =>
  sql`
    insert into answers (payment, status, headers, size, saved_at, body)
    values (${idBytes(p.payment)}, ${p.status}, ${p.headers}, ${p.size}, ${p.now}, ${p.body})
    on conflict (payment) do update set status = excluded.status, headers = excluded.headers, size = excluded.size,
      saved_at = excluded.saved_at, body = excluded.body`;

export type SavedAnswer = Pick<AnswerRow, 'status' | 'headers' | 'body'> & {
  answer_expires_at: number | null;
};

/** The answer of a payment, unless it has expired. */
export const answer = ({ id, now }: Id & At) =>
  one<SavedAnswer>`
    select status, headers, body, answer_expires_at from answers join payments on payments.id = answers.payment
    where answers.payment = ${idBytes(id)} and (answer_expires_at is null or answer_expires_at > ${now})`;

export const answerFacts = ({ id }: Id) =>
  one<Pick<AnswerRow, 'status' | 'size' | 'saved_at'>>`
    select status, size, saved_at from answers where payment = ${idBytes(id)}`;

export const dropAnswer = ({ id }: Id) =>
  one<{ size: number }>`delete from answers where payment = ${idBytes(id)} returning size`;

export const answerBytes = () =>
  one<{ bytes: string }>`select cast(coalesce(sum(size), 0) as text) as bytes from answers`;

/** Payments whose answers have expired. The time is read once in a subquery, so that the index can be used. */
export const expired = (p: At & { limit: number }) =>
  sql<IdRow>`
    select id from payments where answer_expires_at is not null and answer_expires_at <= (select ${p.now})
    limit ${p.limit} for update skip locked`;

/** Extends the expiry of a delivered answer, but never shortens it. */
export const keepAnswer = (p: Id & At & { until: number }) =>
  one<{ answer_expires_at: number }>`
    update payments set answer_expires_at = case when answer_expires_at > cast(${p.until} as bigint) then answer_expires_at
      else cast(${p.until} as bigint) end
    where id = ${idBytes(p.id)} and state = 'delivered' and answer_expires_at > ${p.now} returning answer_expires_at`;

export const forgetAnswer = ({ id }: Id) =>
  sql`update payments set answer_expires_at = null where id = ${idBytes(id)}`;
